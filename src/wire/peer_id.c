#include "wire/peer_id.h"

enum {
  HASH_IDENTITY = 0x00,
  HASH_SHA256 = 0x12,
  SHA256_BYTES = 32,
  BASE = 58,
};

static const char alphabet[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
static const uint8_t key_head[] = {0x08, 0x01, 0x12, ED25519_PUBLIC_BYTES};

void public_key_write(uint8_t out[PUBLIC_KEY_MESSAGE_BYTES], const uint8_t *public_key) {
  memcpy(out, key_head, sizeof key_head);
  memcpy(out + sizeof key_head, public_key, ED25519_PUBLIC_BYTES);
}

const uint8_t *public_key_read(struct view message) {
  bool good = message.len == PUBLIC_KEY_MESSAGE_BYTES && memcmp(message.data, key_head, sizeof key_head) == 0;
  return good ? message.data + sizeof key_head : NULL;
}

void peer_id_of_ed25519(const uint8_t *public_key, struct peer_id *out) {
  *out = (struct peer_id){.len = PEER_ID_MAX, .bytes = {HASH_IDENTITY, PUBLIC_KEY_MESSAGE_BYTES}};
  public_key_write(out->bytes + 2, public_key);
}

const uint8_t *peer_id_ed25519(const struct peer_id *id) {
  if (id->len != PEER_ID_MAX || id->bytes[0] != HASH_IDENTITY) return NULL;
  return public_key_read(view_of(id->bytes + 2, PUBLIC_KEY_MESSAGE_BYTES));
}

static bool is_valid(const struct peer_id *id) {
  if (id->len == 2 + SHA256_BYTES) return id->bytes[0] == HASH_SHA256 && id->bytes[1] == SHA256_BYTES;
  return id->len == PEER_ID_MAX && id->bytes[1] == PUBLIC_KEY_MESSAGE_BYTES && peer_id_ed25519(id);
}

static int digit_of(uint8_t letter) {
  const char *at = letter ? strchr(alphabet, letter) : NULL;
  return at ? (int)(at - alphabet) : -1;
}

/* number (big endian, len bytes) = number * BASE + digit; false when it no longer fits. */
static bool shift_in(uint8_t *number, size_t len, int digit) {
  unsigned carry = (unsigned)digit;
  for (size_t i = len; i-- > 0;) {
    carry += (unsigned)number[i] * BASE;
    number[i] = (uint8_t)carry;
    carry >>= 8;
  }
  return carry == 0;
}

bool peer_id_parse(struct view text, struct peer_id *out) {
  uint8_t number[PEER_ID_MAX] = {0};
  size_t zeros = 0;
  if (text.len == 0 || text.len >= PEER_ID_TEXT_BYTES) return false;
  while (zeros < text.len && text.data[zeros] == (uint8_t)alphabet[0])
    zeros++;
  for (size_t i = zeros; i < text.len; i++) {
    int digit = digit_of(text.data[i]);
    if (digit < 0 || !shift_in(number, sizeof number, digit)) return false;
  }
  size_t start = 0;
  while (start < sizeof number && number[start] == 0)
    start++;
  if (zeros + sizeof number - start > PEER_ID_MAX) return false;
  *out = (struct peer_id){.len = (uint8_t)(zeros + sizeof number - start)};
  memcpy(out->bytes + zeros, number + start, sizeof number - start);
  return is_valid(out);
}

/* number = number / BASE, returns the remainder. */
static unsigned shift_out(uint8_t *number, size_t len) {
  unsigned rest = 0;
  for (size_t i = 0; i < len; i++) {
    rest = rest << 8 | number[i];
    number[i] = (uint8_t)(rest / BASE);
    rest %= BASE;
  }
  return rest;
}

void peer_id_text(const struct peer_id *id, char *out) {
  char reversed[PEER_ID_TEXT_BYTES];
  uint8_t number[PEER_ID_MAX];
  size_t zeros = 0, count = 0;
  memcpy(number, id->bytes, sizeof number);
  while (zeros < id->len && number[zeros] == 0)
    zeros++;
  for (size_t start = zeros; start < id->len && count < sizeof reversed - 1;) {
    reversed[count++] = alphabet[shift_out(number, id->len)];
    while (start < id->len && number[start] == 0)
      start++;
  }
  for (size_t i = 0; i < zeros && count < sizeof reversed - 1; i++)
    reversed[count++] = alphabet[0];
  for (size_t i = 0; i < count; i++)
    out[i] = reversed[count - 1 - i];
  out[count] = 0;
}
