/* Pages: flushed with a table, once and in order, read, deleted, staged; what is refused; and requests that are submitted. */

#include "check.h"

struct told {
    int count;
    ocssd_reply replies[64];
    char words[256];
};

static uint8_t buffer[1 << 20], back[1 << 20];

static void ended(void *context, const ocssd_reply *reply)
{
    struct told *told = (struct told *)context;

    told->replies[told->count++] = *reply;
    if (reply->result < 0)
        snprintf(told->words, sizeof told->words, "%s", ocssd_last_error());
}

static ocssd_target *eleos(ocssd_drive **drive, uint32_t clock, ocssd_pages_limits *limits)
{
    ocssd_drive_options options = {0};
    ocssd_target *target = NULL;
    ocssd_info info;

    options.clock = clock;
    CHECK(ocssd_drive_open("qemu", &options, drive), 0);
    CHECK(ocssd_target_open(*drive, "eleos", NULL, &target), 0);
    CHECK(ocssd_target_info(target, &info), 0);
    CHECK(info.interface, OCSSD_INTERFACE_PAGES);
    CHECK(info.block_bytes, 0);
    CHECK(ocssd_pages_info(target, limits), 0);
    CHECK(limits->flush_bytes_max >= sizeof buffer, 1);
    for (unsigned i = 0; i < sizeof buffer; i++)
        buffer[i] = (uint8_t)(i * 2654435761u >> 24);
    return target;
}

/* The page has these bytes, or is none. */
static void check_page(ocssd_target *target, uint64_t page, const uint8_t *bytes, uint64_t count, int line)
{
    uint64_t length = 77;
    int result = ocssd_pages_read(target, page, 0, back, sizeof back, &length);

    if (bytes ? result == 0 && length == count && memcmp(back, bytes, count) == 0 : result == -ENOENT)
        return;
    fprintf(stderr, "line %d: a read of page %llu returned %d, of %llu bytes\n", line, (unsigned long long)page, result,
            (unsigned long long)length);
    exit(1);
}

#define CHECK_PAGE(target, page, bytes, count) check_page(target, page, bytes, count, __LINE__)

static void waited_for(uint32_t clock)
{
    ocssd_drive *drive = NULL;
    ocssd_pages_limits limits;
    ocssd_target *target = eleos(&drive, clock, &limits);
    ocssd_page table[3] = {{7, 0, 5000}, {UINT64_MAX, 5000, 1}, {9, 8192, 64}};
    ocssd_page deletion[2] = {{7, 0, 0}, {9, 100, 4096}};
    uint64_t applied = 99, durable = 99, pages, bytes, length;

    CHECK(ocssd_pages_flush(target, 3, 1, buffer, 10000, table, 3, 0, NULL), -ENOENT);
    CHECK_SAYS("not open");
    CHECK(ocssd_pages_open_session(target, 3, &applied, &durable), 0);
    CHECK(applied == 0 && durable == 0, 1);
    CHECK(ocssd_pages_flush(target, 3, 1, buffer, 10000, table, 3, OCSSD_FUA, &durable), 0);
    CHECK(durable, 1);
    CHECK_PAGE(target, 7, buffer, 5000);
    CHECK_PAGE(target, UINT64_MAX, buffer + 5000, 1);
    CHECK_PAGE(target, 9, buffer + 8192, 64);
    CHECK_PAGE(target, 8, NULL, 0);
    /* A part of a page, and its length only. */
    memset(back, 0xee, 200);
    CHECK(ocssd_pages_read(target, 7, 4900, back, 200, &length), 0);
    CHECK(length, 5000);
    CHECK(memcmp(back, buffer + 4900, 100) == 0 && back[100] == 0xee, 1);
    CHECK(ocssd_pages_read(target, 7, 0, NULL, 0, &length), 0);
    CHECK(length, 5000);
    CHECK(ocssd_pages_stat(target, &pages, &bytes), 0);
    CHECK(pages == 3 && bytes == 5065, 1);
    /* Deleted and written in one flush; sent again it changes nothing, whatever it has. */
    CHECK(ocssd_pages_flush(target, 3, 2, buffer, 5000, deletion, 2, 0, NULL), 0);
    CHECK(ocssd_pages_flush(target, 3, 2, buffer + 1, 5000, deletion, 2, 0, NULL), 0);
    CHECK(ocssd_pages_flush(target, 3, 1, buffer, 10000, table, 3, 0, NULL), 0);
    CHECK_PAGE(target, 7, NULL, 0);
    CHECK_PAGE(target, 9, buffer + 100, 4096);
    /* A number that does not come next. */
    CHECK(ocssd_pages_flush(target, 3, 4, buffer, 5000, deletion, 2, 0, NULL), -EINVAL);
    CHECK_SAYS("number 3");
    CHECK(ocssd_target_flush(target), 0);
    /* What is kept when the target is closed: pages, and how far the session is. */
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_open(drive, "eleos", NULL, &target), 0);
    CHECK(ocssd_pages_open_session(target, 3, &applied, &durable), 0);
    CHECK(applied == 2 && durable == 2, 1);
    CHECK_PAGE(target, 9, buffer + 100, 4096);
    CHECK(ocssd_pages_close_session(target, 3), 0);
    CHECK(ocssd_pages_close_session(target, 3), -ENOENT);
    CHECK_PAGE(target, 9, buffer + 100, 4096);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

/* A flush whose buffer comes in parts, and requests in progress together. */
static void staged_and_submitted(void)
{
    ocssd_drive *drive = NULL;
    ocssd_pages_limits limits;
    ocssd_target *target = eleos(&drive, OCSSD_CLOCK_VIRTUAL, &limits);
    static uint8_t large[3 << 20];
    ocssd_page table[2] = {{1, 0, 1 << 20}, {2, (1 << 20) + 1000, 1 << 20}}, one[8];
    ocssd_pages_request request = {0};
    struct told told = {0};

    CHECK(limits.stages_max > 1 && limits.stage_bytes_max >= sizeof large, 1);
    for (unsigned i = 0; i < sizeof large; i++)
        large[i] = (uint8_t)(i * 2246822519u >> 23);
    CHECK(ocssd_pages_open_session(target, 1, NULL, NULL), 0);
    CHECK(ocssd_stage_open(target, 0, sizeof large), 0);
    CHECK(ocssd_stage_open(target, 0, sizeof large), -EINVAL);
    CHECK(ocssd_stage_append(target, 0, 0, large, 2500000), 0);
    CHECK(ocssd_stage_append(target, 0, 0, large, 2500000), -EINVAL);
    CHECK_SAYS("2500000");
    request.op = OCSSD_PAGES_FLUSH;
    request.flags = OCSSD_STAGED | OCSSD_FUA;
    request.session = request.number = 1;
    request.bytes = sizeof large;
    request.pages = table;
    request.page_count = 2;
    CHECK(ocssd_pages_submit(target, &request, ended, &told), 0);
    while (told.count < 1)
        CHECK(ocssd_target_poll(target, 1) >= 0, 1);
    CHECK(told.replies[0].result, -EINVAL);
    CHECK(ocssd_stage_append(target, 0, 2500000, large + 2500000, sizeof large - 2500000), 0);
    CHECK(ocssd_pages_submit(target, &request, ended, &told), 0);
    /* Reads behind it see it, answered or not. */
    request = (ocssd_pages_request){0};
    request.op = OCSSD_PAGES_READ;
    request.page = 2;
    request.data = back;
    request.bytes = sizeof back;
    CHECK(ocssd_pages_submit(target, &request, ended, &told), 0);
    while (told.count < 3)
        CHECK(ocssd_target_poll(target, 1) >= 0, 1);
    for (int i = 1; i < 3; i++) {
        CHECK(told.replies[i].result, 0);
        if (told.replies[i].bytes == 0)
            CHECK(told.replies[i].applied == 1 && told.replies[i].durable == 1, 1);
        else
            CHECK(told.replies[i].bytes, 1 << 20);
    }
    CHECK(memcmp(back, large + (1 << 20) + 1000, sizeof back), 0);
    /* The stage is over, and can be begun and given up. */
    CHECK(ocssd_stage_abort(target, 0), -EINVAL);
    CHECK(ocssd_stage_open(target, 0, 10), 0);
    CHECK(ocssd_stage_abort(target, 0), 0);
    /* Flushes in progress together are applied in their order; table and buffer are copied. */
    told.count = 0;
    for (int i = 0; i < 8; i++) {
        one[0] = (ocssd_page){5, 0, 4096};
        memset(back, i, 4096);
        request = (ocssd_pages_request){0};
        request.op = OCSSD_PAGES_FLUSH;
        request.session = 1;
        request.number = (uint64_t)i + 2;
        request.data = back;
        request.bytes = 4096;
        request.pages = one;
        request.page_count = 1;
        CHECK(ocssd_pages_submit(target, &request, ended, &told), 0);
        memset(one, 0xff, sizeof one);
    }
    while (told.count < 8)
        CHECK(ocssd_target_poll(target, 3) >= 0, 1);
    CHECK(told.replies[7].applied, 9);
    CHECK(ocssd_pages_read(target, 5, 0, back, 4096, NULL), 0);
    CHECK(back[0], 7);
    /* A refusal names its row, and in words. */
    told.count = 0;
    table[1].page = table[0].page;
    request.number = 10;
    request.data = buffer;
    request.bytes = sizeof buffer;
    request.pages = table;
    request.page_count = 2;
    table[0].bytes = table[1].bytes = 100;
    table[1].offset = 100;
    CHECK(ocssd_pages_submit(target, &request, ended, &told), 0);
    while (told.count < 1)
        CHECK(ocssd_target_poll(target, 1) >= 0, 1);
    CHECK(told.replies[0].result, -EINVAL);
    CHECK(told.replies[0].entry, 1);
    CHECK(strstr(told.words, "row 1") != NULL, 1);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void refused(void)
{
    ocssd_drive *drive = NULL;
    ocssd_pages_limits limits;
    ocssd_target *target = eleos(&drive, OCSSD_CLOCK_VIRTUAL, &limits), *blocks = NULL;
    ocssd_page table[2] = {{1, 0, 100}, {2, 50, 100}};
    ocssd_pages_request request = {0};
    uint64_t pages;

    CHECK(ocssd_pages_open_session(target, 1, NULL, NULL), 0);
    CHECK(ocssd_pages_flush(target, 1, 1, buffer, 1000, table, 2, 0, NULL), -EINVAL);
    CHECK_SAYS("row 1");
    table[1].offset = 950;
    CHECK(ocssd_pages_flush(target, 1, 1, buffer, 1000, table, 2, 0, NULL), -EINVAL);
    CHECK_SAYS("behind the end");
    table[1].offset = 100;
    CHECK(ocssd_pages_flush(target, 1, 0, buffer, 1000, table, 2, 0, NULL), -EINVAL);
    CHECK_SAYS("count from 1");
    CHECK(ocssd_pages_flush(target, 1, 1, NULL, 1000, table, 2, 0, NULL), -EINVAL);
    CHECK(ocssd_pages_flush(target, 1, 1, buffer, 1000, NULL, 2, 0, NULL), -EINVAL);
    CHECK(ocssd_pages_flush(target, 1, 1, buffer, 1000, table, 2, 2, NULL), -EINVAL);
    CHECK(ocssd_pages_flush(target, 1, 1, NULL, 1000, table, 2, OCSSD_STAGED, NULL), -EINVAL);
    CHECK(ocssd_pages_flush(target, 1, 1, buffer, (16 << 20) + 1, table, 2, 0, NULL), -EFBIG);
    CHECK(ocssd_pages_flush(target, 1, 1, buffer, 1ull << 40, table, 2, 0, NULL), -EFBIG);
    CHECK(ocssd_pages_flush(target, 1, 1, buffer, 1000, table, UINT32_MAX, 0, NULL), -EFBIG);
    CHECK(ocssd_pages_flush(NULL, 1, 1, buffer, 1000, table, 2, 0, NULL), -EINVAL);
    CHECK(ocssd_pages_read(target, 1, 0, NULL, 10, NULL), -EINVAL);
    CHECK(ocssd_pages_read(target, 1, 1ull << 33, back, 10, NULL), -EFBIG);
    CHECK(ocssd_pages_read(target, 1, 0, back, 10, NULL), -ENOENT);
    for (uint64_t session = 2; session <= limits.sessions_max; session++)
        CHECK(ocssd_pages_open_session(target, session, NULL, NULL), 0);
    CHECK(ocssd_pages_open_session(target, 1000, NULL, NULL), -EMFILE);
    CHECK(ocssd_stage_open(target, limits.stages_max, 10), -EINVAL);
    CHECK(ocssd_stage_open(target, 0, (uint64_t)limits.stage_bytes_max + 1), -EINVAL);
    CHECK(ocssd_stage_open(target, 0, 1ull << 32), -EFBIG);
    CHECK(ocssd_stage_append(target, 0, 0, buffer, 10), -EINVAL);
    CHECK(ocssd_stage_append(target, 0, UINT64_MAX, buffer, 10), -EFBIG);
    request.op = 5;
    CHECK(ocssd_pages_submit(target, &request, NULL, NULL), -EINVAL);
    CHECK(ocssd_pages_submit(target, NULL, NULL, NULL), -EINVAL);
    request.op = OCSSD_PAGES_STAT;
    request.flags = OCSSD_FUA;
    CHECK(ocssd_pages_submit(target, &request, NULL, NULL), -EINVAL);
    CHECK(ocssd_pages_info(target, NULL), -EINVAL);
    /* Nothing of all that was stored. Calls of others. */
    CHECK(ocssd_pages_stat(target, &pages, NULL), 0);
    CHECK(pages, 0);
    CHECK(ocssd_target_read(target, back, 4096, 0), -EOPNOTSUPP);
    CHECK_SAYS("log-structured pages");
    CHECK(ocssd_kv_exist(target, "a", 1, NULL), -EOPNOTSUPP);
    CHECK(ocssd_zoned_manage(target, OCSSD_OP_OPEN_ZONE, 0, 0), -EOPNOTSUPP);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_open(drive, "linear", NULL, &blocks), 0);
    CHECK(ocssd_pages_info(blocks, &limits), -EOPNOTSUPP);
    CHECK(ocssd_pages_stat(blocks, NULL, NULL), -EOPNOTSUPP);
    CHECK(ocssd_stage_open(blocks, 0, 10), -EOPNOTSUPP);
    CHECK(ocssd_target_close(&blocks), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

int main(void)
{
    waited_for(OCSSD_CLOCK_VIRTUAL);
    waited_for(OCSSD_CLOCK_WALL);
    staged_and_submitted();
    refused();
    return 0;
}
