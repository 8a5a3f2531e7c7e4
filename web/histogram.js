// Reads HdrHistogram's V2 compressed encoding, as schema version 2 carries it for every clock.

const COMPRESSED = 0x1c849304;
const PLAIN = 0x1c849303;
const COUNTERS_MAX = 1 << 20;

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Zig-zag LEB128 of up to nine bytes; the ninth holds eight bits.
function readVarint(bytes, at) {
  let value = 0n;
  for (let i = 0; i < 9; i++) {
    if (at.offset >= bytes.length) throw new Error('a count is cut off');
    const byte = bytes[at.offset++];
    if (i === 8) {
      value |= BigInt(byte) << 56n;
      break;
    }
    value |= BigInt(byte & 0x7f) << BigInt(7 * i);
    if (!(byte & 0x80)) break;
  }
  return Number(BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n)));
}

function geometry(view) {
  const digits = view.getInt32(12);
  const lowest = Number(view.getBigInt64(16));
  if (digits < 1 || digits > 5 || lowest < 1) throw new Error('its parameters make no sense');
  const subBits = Math.ceil(Math.log2(2 * 10 ** digits));
  return { unitBits: Math.floor(Math.log2(lowest)), half: 2 ** (subBits - 1), halfBits: subBits - 1 };
}

// Lowest and highest value that counter `index` stands for.
function bounds({ unitBits, half, halfBits }, index) {
  const bucket = Math.max(Math.floor(index / 2 ** halfBits) - 1, 0);
  const sub = index < 2 * half ? index : (index % half) + half;
  const width = 2 ** (bucket + unitBits);
  return { low: sub * width, high: (sub + 1) * width - 1 };
}

function readBuckets(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 40 || (view.getUint32(0) & ~0xf0) !== PLAIN) throw new Error('it is not in the V2 encoding');
  const shape = geometry(view);
  const end = Math.min(40 + view.getInt32(4), bytes.length);
  const at = { offset: 40 };
  const payload = bytes.subarray(0, end);
  const buckets = [];
  let total = 0;
  for (let index = 0; at.offset < end && index < COUNTERS_MAX;) {
    const count = readVarint(payload, at);
    if (count <= 0) {
      index += count === 0 ? 1 : -count;
      continue;
    }
    total += count;
    buckets.push({ ...bounds(shape, index), count, passed: total });
    index++;
  }
  return { buckets, total };
}

// {buckets: [{low, high, count, passed}], total}; rejects with an Error that says what is wrong.
export async function decodeHistogram(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  if (bytes.length < 8) throw new Error('it is cut off');
  const view = new DataView(bytes.buffer);
  if ((view.getUint32(0) & ~0xf0) !== COMPRESSED) throw new Error('it is not in the compressed V2 encoding');
  return readBuckets(await inflate(bytes.subarray(8, 8 + view.getInt32(4))));
}

// The value at or below which `percentile` of the values lie, as histogram_percentile of src/measure.
export function percentileOf(histogram, percentile, minNs, maxNs) {
  if (histogram.total === 0) return null;
  if (percentile <= 0) return minNs;
  const product = (percentile / 100) * histogram.total;
  // The product can come out one rounding step above the whole number that it stands for.
  const rank = Math.min(Math.max(Math.ceil(product - product * 2 ** -52), 1), histogram.total);
  const { buckets } = histogram;
  let low = 0;
  let high = buckets.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (buckets[middle].passed >= rank) high = middle;
    else low = middle + 1;
  }
  return Math.min(buckets[low].high, maxNs);
}
