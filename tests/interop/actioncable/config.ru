# frozen_string_literal: true

# websocket-shootout's benchmark channel on Rails' own Action Cable, without the rest of Rails: each connection has a
# stream of its own and the one of all.
require "action_cable"
require "logger"
require "securerandom"

class BenchmarkChannel < ActionCable::Channel::Base
  def subscribed
    @own = SecureRandom.uuid
    stream_from @own
    stream_from "all"
  end

  def echo(data)
    tell @own, "echo", data
  end

  def broadcast(data)
    tell "all", "broadcast", data
    tell @own, "broadcastResult", data
  end

  private

  def tell(stream, action, data)
    ActionCable.server.broadcast stream, { action: action, payload: data["payload"] }
  end
end

ActionCable.server.config.tap do |config|
  config.cable = { "adapter" => "async" }
  config.disable_request_forgery_protection = true
  config.logger = Logger.new($stderr, level: Logger::WARN)
end

map("/cable") { run ActionCable.server }
