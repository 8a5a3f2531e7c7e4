# The two commands of the README are `make demo` and `make test`; both install what is missing first.
.DEFAULT_GOAL := build
.PHONY: packages build demo test bench deb fmt lint clean

packages:
	@scripts/install-packages

build: packages
	@cmake --preset release >/dev/null
	@cmake --build --preset release

demo: build
	@scripts/demo build/release

test: build
	@scripts/test

bench: build
	@bench/run build/release

# A package for this Debian: build/release/muster_VERSION_ARCHITECTURE.deb
deb: build
	@cd build/release && cpack -G DEB

fmt:
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

lint: packages
	@scripts/lint

clean:
	rm -rf build
