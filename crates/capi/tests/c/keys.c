/* Keys and values: stored, read in parts, deleted, listed, changed together, staged; what is refused; and requests submitted. */

#include "check.h"

struct told {
    int count;
    ocssd_reply replies[64];
    char words[256];
};

static uint8_t value[6 << 20], back[6 << 20];

static void ended(void *context, const ocssd_reply *reply)
{
    struct told *told = (struct told *)context;

    told->replies[told->count++] = *reply;
    if (reply->result < 0)
        snprintf(told->words, sizeof told->words, "%s", ocssd_last_error());
}

static ocssd_target *kv(ocssd_drive **drive, const char *what, uint32_t clock, ocssd_kv_limits *limits)
{
    ocssd_drive_options options = {0};
    ocssd_target *target = NULL;
    ocssd_info info;

    options.clock = clock;
    CHECK(ocssd_drive_open_toml("preset = \"tiny\"\nchunks_per_pu = 512\nsectors_per_chunk = 64", &options, drive), 0);
    CHECK(ocssd_target_open(*drive, what, NULL, &target), 0);
    CHECK(ocssd_target_info(target, &info), 0);
    CHECK(info.interface, OCSSD_INTERFACE_KEYS);
    CHECK(ocssd_kv_info(target, limits), 0);
    for (unsigned i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)(i * 2654435761u >> 22);
    return target;
}

static int store(ocssd_target *target, const char *key, const void *data, uint64_t bytes, uint32_t flags)
{
    return ocssd_kv_store(target, key, (uint32_t)strlen(key), data, bytes, flags);
}

/* The key has these bytes, or does not exist. */
static void check_key(ocssd_target *target, const char *key, const uint8_t *bytes, uint64_t count, int line)
{
    uint64_t length = 77, known = 78;
    uint32_t key_bytes = (uint32_t)strlen(key);
    int result = ocssd_kv_retrieve(target, key, key_bytes, 0, back, sizeof back, &length);
    int exists = ocssd_kv_exist(target, key, key_bytes, &known);

    if (bytes ? result == 0 && exists == 0 && length == count && known == count && memcmp(back, bytes, count) == 0
              : result == -ENOENT && exists == -ENOENT)
        return;
    fprintf(stderr, "line %d: a retrieve of %s returned %d, of %llu bytes\n", line, key, result, (unsigned long long)length);
    exit(1);
}

#define CHECK_KEY(target, key, bytes, count) check_key(target, key, (const uint8_t *)(bytes), count, __LINE__)

/* The keys of a list, with a space behind each. */
static const char *listed(ocssd_target *target, const char *from, uint32_t prefix, uint64_t room)
{
    static char all[4096];
    uint64_t place = 0;
    const void *key = NULL;
    uint32_t key_bytes = 0;
    int count = ocssd_kv_list(target, from, (uint32_t)strlen(from), prefix, back, room), found = 0;

    CHECK(count >= 0, 1);
    all[0] = '\0';
    while (ocssd_kv_next_key(back, room, &place, &key, &key_bytes) == 1) {
        strncat(all, (const char *)key, key_bytes);
        strcat(all, " ");
        found++;
    }
    CHECK(found, count);
    return all;
}

static void waited_for(const char *what, uint32_t clock)
{
    ocssd_drive *drive = NULL;
    ocssd_kv_limits limits;
    ocssd_target *target = kv(&drive, what, clock, &limits);
    static const char forty[] = "a key that has forty bytes, no more less";
    uint64_t length;

    CHECK(limits.key_bytes_max >= 40 && limits.batch_changes_max >= 8, 1);
    CHECK(store(target, "one", value, 1000, 0), 0);
    CHECK(store(target, "empty", NULL, 0, 0), 0);
    CHECK(store(target, forty, value + 7, 70000, OCSSD_FUA), 0);
    CHECK_KEY(target, "one", value, 1000);
    CHECK_KEY(target, "empty", "", 0);
    CHECK_KEY(target, forty, value + 7, 70000);
    CHECK_KEY(target, "On", NULL, 0);
    /* A part of a value, and its length only. */
    memset(back, 0xee, 200);
    CHECK(ocssd_kv_retrieve(target, "one", 3, 900, back, 200, &length), 0);
    CHECK(length, 1000);
    CHECK(memcmp(back, value + 900, 100) == 0 && back[100] == 0xee, 1);
    CHECK(ocssd_kv_retrieve(target, "one", 3, 0, NULL, 0, &length), 0);
    CHECK(length, 1000);
    CHECK(ocssd_kv_retrieve(target, "one", 3, 5000, back, 200, &length), 0);
    CHECK(length, 1000);
    /* What must be so. */
    CHECK(store(target, "one", value, 10, OCSSD_MUST_NOT_EXIST), -EEXIST);
    CHECK_SAYS("exists");
    CHECK(store(target, "two", value, 10, OCSSD_MUST_EXIST), -ENOENT);
    CHECK(store(target, "two", value, 20, OCSSD_MUST_NOT_EXIST), 0);
    CHECK(store(target, "two", value, 30, OCSSD_MUST_EXIST), 0);
    CHECK_KEY(target, "two", value, 30);
    CHECK(ocssd_kv_delete(target, "three", 5, 0), 0);
    CHECK(ocssd_kv_delete(target, "three", 5, OCSSD_MUST_EXIST), -ENOENT);
    CHECK(ocssd_kv_delete(target, "empty", 5, OCSSD_MUST_EXIST | OCSSD_FUA), 0);
    CHECK_KEY(target, "empty", NULL, 0);
    CHECK(ocssd_target_flush(target), 0);
    /* Lists. */
    CHECK(store(target, "tax", value, 1, 0), 0);
    if (limits.lists_in_order) {
        CHECK(strcmp(listed(target, "", 0, sizeof back), "a key that has forty bytes, no more less one tax two "), 0);
        CHECK(strcmp(listed(target, "p", 0, sizeof back), "tax two "), 0);
        CHECK(strcmp(listed(target, "tb", 1, sizeof back), "two "), 0);
    }
    CHECK(strcmp(listed(target, "zz", 2, sizeof back), ""), 0);
    CHECK(strcmp(listed(target, "t", 1, 12) + 3, " "), 0);
    /* What is kept when the target is closed. */
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_open(drive, what, NULL, &target), 0);
    CHECK_KEY(target, forty, value + 7, 70000);
    CHECK_KEY(target, "empty", NULL, 0);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static ocssd_kv_change change(uint32_t op, uint32_t flags, const char *key, const void *data, uint64_t bytes)
{
    ocssd_kv_change made = {0};

    made.op = op;
    made.flags = flags;
    made.key = key;
    made.key_bytes = (uint32_t)strlen(key);
    made.value = data;
    made.value_bytes = bytes;
    return made;
}

static void batches(void)
{
    ocssd_drive *drive = NULL;
    ocssd_kv_limits limits;
    ocssd_target *target = kv(&drive, "kv", OCSSD_CLOCK_VIRTUAL, &limits);
    ocssd_kv_change changes[4];
    static ocssd_kv_change many[4096];

    changes[0] = change(OCSSD_KV_STORE, 0, "first", value, 5000);
    changes[1] = change(OCSSD_KV_STORE, OCSSD_MUST_EXIST, "first", value + 1, 6000);
    changes[2] = change(OCSSD_KV_STORE, OCSSD_MUST_NOT_EXIST, "a key of more than sixteen bytes", value + 2, 1);
    changes[3] = change(OCSSD_KV_DELETE, 0, "third", NULL, 0);
    CHECK(ocssd_kv_batch(target, changes, 4, OCSSD_FUA), 0);
    CHECK_KEY(target, "first", value + 1, 6000);
    CHECK_KEY(target, "a key of more than sixteen bytes", value + 2, 1);
    /* All or nothing. */
    changes[3].flags = OCSSD_MUST_EXIST;
    changes[2].flags = 0;
    changes[1].value_bytes = 7;
    CHECK(ocssd_kv_batch(target, changes, 4, 0), -ENOENT);
    CHECK_SAYS("change 3");
    CHECK_KEY(target, "first", value + 1, 6000);
    CHECK(ocssd_kv_batch(target, changes, 0, 0), 0);
    /* What cannot be. */
    CHECK(ocssd_kv_batch(target, NULL, 1, 0), -EINVAL);
    CHECK(ocssd_kv_batch(target, changes, 3, OCSSD_MUST_EXIST), -EINVAL);
    changes[1].key_bytes = 0;
    CHECK(ocssd_kv_batch(target, changes, 3, 0), -EINVAL);
    CHECK_SAYS("change 1: a key has 1 to");
    changes[1] = change(OCSSD_KV_DELETE, 0, "first", value, 1);
    CHECK(ocssd_kv_batch(target, changes, 3, 0), -EINVAL);
    changes[1] = change(OCSSD_KV_STORE, 0, "first", NULL, 1);
    CHECK(ocssd_kv_batch(target, changes, 3, 0), -EINVAL);
    changes[1] = change(OCSSD_KV_EXIST, 0, "first", NULL, 0);
    CHECK(ocssd_kv_batch(target, changes, 3, 0), -EINVAL);
    changes[1] = change(OCSSD_KV_STORE, OCSSD_FUA, "first", value, 1);
    CHECK(ocssd_kv_batch(target, changes, 3, 0), -EINVAL);
    changes[1] = change(OCSSD_KV_STORE, 0, "first", value, 17 << 20);
    CHECK(ocssd_kv_batch(target, changes, 3, 0), -EFBIG);
    for (uint32_t i = 0; i <= limits.batch_changes_max; i++)
        many[i] = change(OCSSD_KV_STORE, 0, "many", value, i);
    CHECK(ocssd_kv_batch(target, many, limits.batch_changes_max + 1, 0), -EFBIG);
    CHECK_KEY(target, "many", NULL, 0);
    CHECK(ocssd_kv_batch(target, many, limits.batch_changes_max, 0), 0);
    CHECK_KEY(target, "many", value, limits.batch_changes_max - 1);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void staged_and_submitted(void)
{
    ocssd_drive *drive = NULL;
    ocssd_kv_limits limits;
    ocssd_target *target = kv(&drive, "kv", OCSSD_CLOCK_VIRTUAL, &limits);
    ocssd_kv_request request = {0};
    struct told told = {0};
    char key[16];

    CHECK(limits.value_bytes_max >= sizeof value, 1);
    CHECK(ocssd_stage_open(target, 1, sizeof value), 0);
    CHECK(ocssd_stage_append(target, 1, 0, value, 5000001), 0);
    CHECK(ocssd_kv_store_staged(target, "large", 5, 1, sizeof value, 0), -EINVAL);
    CHECK_SAYS("5000001");
    CHECK(ocssd_stage_append(target, 1, 5000001, value + 5000001, sizeof value - 5000001), 0);
    CHECK_KEY(target, "large", NULL, 0);
    CHECK(ocssd_kv_store_staged(target, "large", 5, 1, sizeof value, OCSSD_FUA), 0);
    CHECK_KEY(target, "large", value, sizeof value);
    CHECK(ocssd_kv_store_staged(target, "large", 5, 1, sizeof value, 0), -EINVAL);
    CHECK(ocssd_kv_store_staged(target, "large", 5, 2, 10, 0), -EINVAL);
    /* In progress together; keys and values are copied. */
    for (int i = 0; i < 32; i++) {
        snprintf(key, sizeof key, "key %d", i);
        request = (ocssd_kv_request){0};
        request.op = OCSSD_KV_STORE;
        request.key = key;
        request.key_bytes = (uint32_t)strlen(key);
        request.data = value;
        request.bytes = 3000;
        value[0] = (uint8_t)i;
        CHECK(ocssd_kv_submit(target, &request, ended, &told), 0);
    }
    request.op = OCSSD_KV_RETRIEVE;
    request.data = back;
    request.bytes = 100;
    CHECK(ocssd_kv_submit(target, &request, ended, &told), 0);
    request.op = OCSSD_KV_LIST;
    request.prefix_bytes = 4;
    request.key_bytes = 4;
    request.data = back + 100;
    request.bytes = 4096;
    CHECK(ocssd_kv_submit(target, &request, ended, &told), 0);
    request = (ocssd_kv_request){0};
    request.op = OCSSD_KV_STORE;
    request.flags = OCSSD_MUST_NOT_EXIST;
    request.key = "key 3";
    request.key_bytes = 5;
    CHECK(ocssd_kv_submit(target, &request, ended, &told), 0);
    CHECK(ocssd_target_close(&target), -EBUSY);
    while (told.count < 35)
        CHECK(ocssd_target_poll(target, 7) >= 0, 1);
    CHECK(back[0], 31);
    CHECK(back[100], 32);
    for (int i = 0, seen = 0; i < 35; i++) {
        if (told.replies[i].result < 0)
            CHECK(told.replies[i].result == -EEXIST && told.replies[i].status == 0x89 && ++seen == 1, 1);
        else if (told.replies[i].count > 0)
            CHECK(told.replies[i].count, 32);
        else if (told.replies[i].bytes > 0)
            CHECK(told.replies[i].bytes, 3000);
    }
    CHECK(strstr(told.words, "exists") != NULL, 1);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void refused(void)
{
    ocssd_drive *drive = NULL;
    ocssd_kv_limits limits;
    ocssd_target *target = kv(&drive, "kv", OCSSD_CLOCK_VIRTUAL, &limits), *blocks = NULL;
    static uint8_t key[300] = "key", list[16] = {2, 0, 0, 0, 1, 0, 'a', 0, 200, 0};
    ocssd_kv_request request = {0};
    uint64_t place = 0;
    const void *found;
    uint32_t found_bytes;

    CHECK(ocssd_kv_store(target, key, 0, value, 10, 0), -EINVAL);
    CHECK_SAYS("a key has 1 to");
    CHECK(ocssd_kv_store(target, key, limits.key_bytes_max, value, 10, 0), 0);
    CHECK(ocssd_kv_store(target, key, limits.key_bytes_max + 1, value, 10, 0), -EINVAL);
    CHECK(ocssd_kv_store(target, key, UINT32_MAX, value, 10, 0), -EINVAL);
    CHECK(ocssd_kv_store(target, NULL, 3, value, 10, 0), -EINVAL);
    CHECK(ocssd_kv_store(target, key, 3, NULL, 10, 0), -EINVAL);
    CHECK(ocssd_kv_store(NULL, key, 3, value, 10, 0), -EINVAL);
    CHECK(ocssd_kv_store(target, key, 3, value, 10, 2), -EINVAL);
    CHECK(ocssd_kv_store(target, key, 3, NULL, 10, OCSSD_STAGED), -EINVAL);
    CHECK(ocssd_kv_store(target, key, 3, value, 10, OCSSD_MUST_EXIST | OCSSD_MUST_NOT_EXIST), -EINVAL);
    CHECK(ocssd_kv_store(target, key, 3, value, 17 << 20, 0), -EFBIG);
    CHECK(ocssd_stage_open(target, 0, (uint64_t)limits.stage_bytes_max + 1), -EINVAL);
    CHECK(ocssd_stage_open(target, limits.stages_max, 10), -EINVAL);
    CHECK(ocssd_kv_retrieve(target, key, 0, 0, back, 10, NULL), -EINVAL);
    CHECK(ocssd_kv_retrieve(target, key, 3, 1ull << 32, back, 10, NULL), -EFBIG);
    CHECK(ocssd_kv_retrieve(target, key, 3, 0, NULL, 10, NULL), -EINVAL);
    CHECK(ocssd_kv_delete(target, key, 0, 0), -EINVAL);
    CHECK(ocssd_kv_delete(target, key, 3, OCSSD_MUST_NOT_EXIST), -EINVAL);
    CHECK(ocssd_kv_exist(target, key, 0, NULL), -EINVAL);
    CHECK(ocssd_kv_list(target, key, 3, 4, back, 4096), -EINVAL);
    CHECK(ocssd_kv_list(target, key, 3, 0, back, 3), -EINVAL);
    CHECK(ocssd_kv_list(target, key, 256, 0, back, 4096), -EINVAL);
    CHECK(ocssd_kv_list(target, NULL, 0, 0, back, 4096), 1);
    /* A list that was cut short. */
    CHECK(ocssd_kv_next_key(list, sizeof list, &place, &found, &found_bytes), 1);
    CHECK(found == list + 6 && found_bytes == 1, 1);
    CHECK(ocssd_kv_next_key(list, sizeof list, &place, &found, &found_bytes), -EINVAL);
    CHECK_SAYS("ends too early");
    CHECK(ocssd_kv_next_key(list, 3, &place, &found, &found_bytes), -EINVAL);
    CHECK(ocssd_kv_next_key(list, sizeof list, NULL, &found, &found_bytes), -EINVAL);
    place = UINT64_MAX;
    CHECK(ocssd_kv_next_key(list, sizeof list, &place, &found, &found_bytes), 0);
    request.op = 6;
    CHECK(ocssd_kv_submit(target, &request, NULL, NULL), -EINVAL);
    CHECK(ocssd_kv_submit(target, NULL, NULL, NULL), -EINVAL);
    CHECK(ocssd_kv_info(target, NULL), -EINVAL);
    /* Calls of others. */
    CHECK(ocssd_target_write(target, value, 4096, 0, 0), -EOPNOTSUPP);
    CHECK_SAYS("keys and values");
    CHECK(ocssd_pages_stat(target, NULL, NULL), -EOPNOTSUPP);
    CHECK(ocssd_zoned_changed(target, &place), -EOPNOTSUPP);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_open(drive, "linear", NULL, &blocks), 0);
    CHECK(ocssd_kv_info(blocks, &limits), -EOPNOTSUPP);
    CHECK(ocssd_kv_store(blocks, key, 3, value, 10, 0), -EOPNOTSUPP);
    CHECK(ocssd_kv_batch(blocks, NULL, 0, 0), -EOPNOTSUPP);
    CHECK(ocssd_target_close(&blocks), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

int main(void)
{
    waited_for("kv", OCSSD_CLOCK_VIRTUAL);
    waited_for("kv", OCSSD_CLOCK_WALL);
    waited_for("kv-block:over=ox-block", OCSSD_CLOCK_VIRTUAL);
    batches();
    staged_and_submitted();
    refused();
    return 0;
}
