/* Four connections of one thread that never sleeps: latency of 4 KiB reads or writes without clients that wait for each other's
 * time slices.
 *
 *     cc -O2 -o one_thread experiments/serve-nbd/one_thread.c -lnbd
 *     ./one_thread SOCKET read|write SECONDS CONNECTIONS DEPTH
 *
 * Prints I/Os each second and the 50th, 99th and 99.9th percentile in microseconds. Needs libnbd (Debian: libnbd-dev).
 */
#include <libnbd.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 4096, AREA_BLOCKS = 262144, CONNECTIONS_MAX = 16, DEPTH_MAX = 128, SAMPLES_MAX = 20000000 };

struct slot {
  struct nbd_handle *nbd;
  uint64_t begun;
  int connection, in_flight;
  char *memory;
};

static struct slot slots[CONNECTIONS_MAX * DEPTH_MAX];
static float *samples;
static long ended;
static uint64_t state = 88172645463325252ULL;

static uint64_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (uint64_t)at.tv_sec * 1000000000ULL + (uint64_t)at.tv_nsec;
}

/* Marsaglia's xorshift64. */
static uint64_t drawn(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static void check(int failed) {
  if (failed) {
    fprintf(stderr, "libnbd: %s\n", nbd_get_error());
    exit(1);
  }
}

static int done(void *user, int *error) {
  struct slot *slot = user;
  if (*error) {
    fprintf(stderr, "an I/O failed: %s\n", strerror(*error));
    exit(1);
  }
  if (ended < SAMPLES_MAX) samples[ended] = (float)((now() - slot->begun) / 1000.0);
  ended++;
  slot->in_flight = 0;
  return 1; /* The command is done with. */
}

static void begin(struct slot *slot, int is_write) {
  uint64_t offset = drawn() % AREA_BLOCKS * BLOCK;
  nbd_completion_callback callback = {.callback = done, .user_data = slot};
  slot->in_flight = 1;
  slot->begun = now();
  int64_t cookie = is_write ? nbd_aio_pwrite(slot->nbd, slot->memory, BLOCK, offset, callback, 0)
                            : nbd_aio_pread(slot->nbd, slot->memory, BLOCK, offset, callback, 0);
  check(cookie == -1);
}

static int by_size(const void *left, const void *right) {
  float a = *(const float *)left, b = *(const float *)right;
  return (a > b) - (a < b);
}

int main(int count, char **words) {
  if (count != 6) {
    fprintf(stderr, "usage: %s SOCKET read|write SECONDS CONNECTIONS DEPTH\n", words[0]);
    return 2;
  }
  int is_write = strcmp(words[2], "write") == 0, connections = atoi(words[4]), depth = atoi(words[5]);
  double seconds = atof(words[3]);
  if (connections < 1 || connections > CONNECTIONS_MAX || depth < 1 || depth > DEPTH_MAX || seconds <= 0) {
    fprintf(stderr, "expected 1 to %d connections of depth 1 to %d, and some time\n", CONNECTIONS_MAX, DEPTH_MAX);
    return 2;
  }
  samples = malloc(sizeof(float) * SAMPLES_MAX);
  struct nbd_handle *handles[CONNECTIONS_MAX];
  for (int c = 0; c < connections; c++) {
    check(!(handles[c] = nbd_create()));
    check(nbd_connect_unix(handles[c], words[1]) == -1);
    for (int d = 0; d < depth; d++) {
      struct slot *slot = &slots[c * depth + d];
      *slot = (struct slot){.nbd = handles[c], .connection = c, .memory = aligned_alloc(BLOCK, BLOCK)};
      memset(slot->memory, c + d, BLOCK);
    }
  }
  uint64_t from = now(), until = from + (uint64_t)(seconds * 1e9);
  while (now() < until) {
    for (int c = 0; c < connections; c++) {
      for (int d = 0; d < depth; d++) {
        struct slot *slot = &slots[c * depth + d];
        if (!slot->in_flight) begin(slot, is_write);
      }
      check(nbd_poll(handles[c], 0) == -1);
    }
  }
  double passed = (now() - from) / 1e9;
  long kept = ended < SAMPLES_MAX ? ended : SAMPLES_MAX;
  qsort(samples, (size_t)kept, sizeof(float), by_size);
  printf("%.0f,%.0f,%.0f,%.0f\n", ended / passed, samples[kept / 2], samples[kept / 100 * 99], samples[kept / 1000 * 999]);
  return 0;
}
