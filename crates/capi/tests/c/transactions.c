/* Transactions over several requests: seen at their commit and not before, given up, bounded; and what is refused. */

#include "check.h"

#define BLOCK 4096

static uint8_t data[64][BLOCK], back[64][BLOCK];

struct told {
    int count;
    int results[64];
};

static void ended(void *context, int result, uint16_t status)
{
    struct told *told = (struct told *)context;

    CHECK((result == 0) == (status == 0), 1);
    told->results[told->count++] = result;
}

static ocssd_target *ox_block(ocssd_drive **drive, uint32_t clock)
{
    ocssd_drive_options options = {0};
    ocssd_target *target = NULL;

    options.clock = clock;
    CHECK(ocssd_drive_open_toml("preset = \"tiny\"\nchunks_per_pu = 256", &options, drive), 0);
    CHECK(ocssd_target_open(*drive, "ox-block", NULL, &target), 0);
    for (int i = 0; i < 64; i++)
        memset(data[i], i + 1, BLOCK);
    return target;
}

/* The block has this byte everywhere. */
static void check_block(ocssd_target *target, uint64_t block, uint8_t value, int line)
{
    CHECK(ocssd_target_read(target, back, BLOCK, block * BLOCK), 0);
    for (int i = 0; i < BLOCK; i++)
        if (back[0][i] != value) {
            fprintf(stderr, "line %d: block %llu has %d, but should have %d\n", line, (unsigned long long)block, back[0][i], value);
            exit(1);
        }
}

#define CHECK_BLOCK(target, block, value) check_block(target, block, value, __LINE__)

static void waited_for(uint32_t clock)
{
    ocssd_drive *drive = NULL;
    ocssd_target *target = ox_block(&drive, clock);
    ocssd_transaction_limits limits;
    uint64_t a = 0, b = 0, many[64];
    uint32_t begun = 0;
    int result;

    CHECK(ocssd_transaction_info(target, &limits), 0);
    CHECK(limits.bytes_max >= 64 * BLOCK && limits.open_max > 1 && limits.open_max < 64, 1);
    CHECK(ocssd_target_write(target, data, 4 * BLOCK, 0, 0), 0);
    CHECK(ocssd_transaction_begin(target, &a), 0);
    CHECK(ocssd_transaction_begin(target, &b), 0);
    CHECK(a != b, 1);
    CHECK(ocssd_transaction_write(target, a, data[10], BLOCK, 0), 0);
    CHECK(ocssd_transaction_write(target, a, data[20], 3 * BLOCK, 1000 * BLOCK), 0);
    CHECK(ocssd_transaction_write(target, a, data[11], BLOCK, 0), 0);
    CHECK(ocssd_transaction_write(target, b, data[30], 2 * BLOCK, 0), 0);
    CHECK(ocssd_target_flush(target), 0);
    CHECK_BLOCK(target, 0, 1);
    CHECK_BLOCK(target, 1000, 0);
    CHECK(ocssd_transaction_commit(target, a), 0);
    CHECK_BLOCK(target, 0, 12);
    CHECK_BLOCK(target, 1, 2);
    CHECK_BLOCK(target, 1002, 23);
    CHECK(ocssd_transaction_abort(target, b), 0);
    CHECK_BLOCK(target, 0, 12);
    /* They are over. */
    CHECK(ocssd_transaction_commit(target, a), -ENOENT);
    CHECK_SAYS("not open");
    CHECK(ocssd_transaction_abort(target, b), -ENOENT);
    CHECK(ocssd_transaction_write(target, a, data[0], BLOCK, 0), -ENOENT);
    /* As many as can be, and one more. */
    while ((result = ocssd_transaction_begin(target, &many[begun])) == 0)
        begun++;
    CHECK(result, -EMFILE);
    CHECK(begun > 1 && begun <= limits.open_max, 1);
    CHECK(many[begun] == UINT64_MAX, 1);
    for (uint64_t at = 0; at < limits.bytes_max; at += 32 * BLOCK)
        CHECK(ocssd_transaction_write(target, many[0], data, 32 * BLOCK, at), 0);
    CHECK(ocssd_transaction_write(target, many[0], data, BLOCK, 0), -ENOSPC);
    CHECK(ocssd_transaction_commit(target, many[0]), 0);
    CHECK_BLOCK(target, 33, 2);
    /* What is open when the target is closed was never there. */
    CHECK(ocssd_transaction_write(target, many[1], data[50], BLOCK, 33 * BLOCK), 0);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_open(drive, "ox-block", NULL, &target), 0);
    CHECK_BLOCK(target, 33, 2);
    CHECK_BLOCK(target, 1002, 23);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void submitted(void)
{
    ocssd_drive *drive = NULL;
    ocssd_target *target = ox_block(&drive, OCSSD_CLOCK_VIRTUAL);
    ocssd_request request = {OCSSD_OP_WRITE, 0, 0, BLOCK, NULL};
    struct told told = {0};
    uint64_t transaction = 0;

    CHECK(ocssd_transaction_begin(target, &transaction), 0);
    for (int i = 0; i < 32; i++) {
        request.data = data[i];
        request.offset = (uint64_t)i * 7 * BLOCK;
        CHECK(ocssd_transaction_submit(target, transaction, &request, ended, &told), 0);
        memset(data[i], 0xee, BLOCK);
    }
    request = (ocssd_request){OCSSD_OP_COMMIT, 0, 0, 0, NULL};
    CHECK(ocssd_transaction_submit(target, transaction, &request, ended, &told), 0);
    while (told.count < 33)
        CHECK(ocssd_target_poll(target, 5) >= 0, 1);
    for (int i = 0; i < 33; i++)
        CHECK(told.results[i], 0);
    for (int i = 0; i < 32; i++)
        CHECK_BLOCK(target, (uint64_t)i * 7, (uint8_t)(i + 1));
    CHECK(ocssd_transaction_submit(target, transaction, &request, ended, &told), -ENOENT);
    CHECK(told.count, 33);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

static void refused(void)
{
    ocssd_drive *drive = NULL;
    ocssd_target *target = ox_block(&drive, OCSSD_CLOCK_VIRTUAL), *other = NULL;
    ocssd_transaction_limits limits;
    ocssd_request request = {OCSSD_OP_WRITE, OCSSD_FUA, 0, BLOCK, data};
    uint64_t transaction = 0;
    ocssd_info info;

    CHECK(ocssd_target_info(target, &info), 0);
    CHECK(ocssd_transaction_begin(target, NULL), -EINVAL);
    CHECK(ocssd_transaction_begin(NULL, &transaction), -EINVAL);
    CHECK(ocssd_transaction_begin(target, &transaction), 0);
    CHECK(ocssd_transaction_write(target, transaction, data, 100, 0), -EINVAL);
    CHECK(ocssd_transaction_write(target, transaction, NULL, BLOCK, 0), -EINVAL);
    CHECK(ocssd_transaction_write(target, transaction, data, BLOCK, info.block_count * BLOCK), -EINVAL);
    CHECK(ocssd_transaction_write(target, transaction + 1000, data, BLOCK, 0), -ENOENT);
    CHECK(ocssd_transaction_submit(target, transaction, &request, ended, NULL), -EINVAL);
    request.flags = 0;
    request.op = OCSSD_OP_DISCARD;
    CHECK(ocssd_transaction_submit(target, transaction, &request, ended, NULL), -EINVAL);
    request.op = OCSSD_OP_COMMIT;
    CHECK(ocssd_transaction_submit(target, transaction, &request, ended, NULL), -EINVAL);
    CHECK_SAYS("offset and bytes are 0");
    CHECK(ocssd_target_submit(target, &request, ended, NULL), -EINVAL);
    CHECK(ocssd_transaction_submit(target, transaction, NULL, ended, NULL), -EINVAL);
    /* The transaction is still there, and empty. */
    CHECK(ocssd_transaction_commit(target, transaction), 0);
    CHECK_BLOCK(target, 0, 0);
    CHECK(ocssd_target_close(&target), 0);
    CHECK(ocssd_target_open(drive, "linear", NULL, &other), 0);
    CHECK(ocssd_transaction_info(other, &limits), -EOPNOTSUPP);
    CHECK(ocssd_transaction_begin(other, &transaction), -EOPNOTSUPP);
    CHECK_SAYS("no transactions");
    CHECK(ocssd_transaction_write(other, 0, data, BLOCK, 0), -EOPNOTSUPP);
    CHECK(ocssd_transaction_commit(other, 0), -EOPNOTSUPP);
    CHECK(ocssd_target_close(&other), 0);
    CHECK(ocssd_drive_close(&drive), 0);
}

int main(void)
{
    waited_for(OCSSD_CLOCK_VIRTUAL);
    waited_for(OCSSD_CLOCK_WALL);
    submitted();
    refused();
    return 0;
}
