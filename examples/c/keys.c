/* Accounts in a key-value drive: transfers as batches, which are there as a whole or not at all, then a list of all keys with a
 * prefix; and a value of 24 MiB, given and read in parts.
 *
 *     cc keys.c $(pkg-config --cflags --libs ocssd) -o keys && ./keys
 */

#include <ocssd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCOUNTS 200
#define TRANSFERS 1000
#define LARGE (24u << 20)
#define PART (4u << 20)

static ocssd_target *target;
static uint8_t part[PART];

static void must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, ocssd_last_error());
        exit(1);
    }
}

static uint32_t name_of(char *name, int account)
{
    return (uint32_t)sprintf(name, "account:%03d", account);
}

static int64_t balance_of(int account)
{
    char name[32];
    int64_t balance = 0;

    must(ocssd_kv_retrieve(target, name, name_of(name, account), 0, &balance, sizeof balance, NULL), "retrieve");
    return balance;
}

static void transfer(int from, int to, int64_t amount)
{
    char names[2][32];
    int64_t balances[2] = {balance_of(from) - amount, balance_of(to) + amount};
    int accounts[2] = {from, to};
    ocssd_kv_change changes[2] = {{0}, {0}};

    if (from == to)
        return;
    for (int i = 0; i < 2; i++) {
        changes[i].op = OCSSD_KV_STORE;
        changes[i].flags = OCSSD_MUST_EXIST;
        changes[i].key = names[i];
        changes[i].key_bytes = name_of(names[i], accounts[i]);
        changes[i].value = &balances[i];
        changes[i].value_bytes = sizeof balances[i];
    }
    must(ocssd_kv_batch(target, changes, 2, OCSSD_FUA), "batch");
}

/* All keys that begin with "account:", as many at a time as there is room for. */
static int64_t sum_of_all(int *accounts)
{
    char from[32] = "account:";
    uint32_t from_bytes = 8, key_bytes = 0;
    int64_t sum = 0;
    int listed;

    do {
        static uint8_t list[1024];
        uint64_t place = 0;
        const void *key = NULL;

        listed = ocssd_kv_list(target, from, from_bytes, 8, list, sizeof list);
        must(listed, "list");
        while (ocssd_kv_next_key(list, sizeof list, &place, &key, &key_bytes) == 1) {
            int64_t balance = 0;

            must(ocssd_kv_retrieve(target, key, key_bytes, 0, &balance, sizeof balance, NULL), "retrieve");
            sum += balance;
            ++*accounts;
            memcpy(from, key, key_bytes);
        }
        /* The next list begins behind the last key: the least key after it has a zero at its end. */
        from_bytes = key_bytes + 1;
        from[key_bytes] = '\0';
    } while (listed > 0);
    return sum;
}

int main(void)
{
    ocssd_drive *drive = NULL;
    uint64_t start = 0, end = 0, length = 0;
    int64_t hundred = 100, sum;
    int accounts = 0;
    char name[32];

    must(ocssd_drive_open("cnex-tlc", NULL, &drive), "open the drive");
    must(ocssd_target_open(drive, "kv", "pu:0-7", &target), "open kv");
    for (int account = 0; account < ACCOUNTS; account++)
        must(ocssd_kv_store(target, name, name_of(name, account), &hundred, sizeof hundred, OCSSD_MUST_NOT_EXIST), "store");
    must(ocssd_drive_now(drive, &start), "time");
    for (int i = 0; i < TRANSFERS; i++)
        transfer(i * 7 % ACCOUNTS, i * 13 % ACCOUNTS, i % 50);
    must(ocssd_drive_now(drive, &end), "time");
    sum = sum_of_all(&accounts);
    printf("%d durable transfers in %.2f ms of the drive's time; %d accounts have %lld\n", TRANSFERS,
           (double)(end - start) / 1e6, accounts, (long long)sum);

    must(ocssd_stage_open(target, 0, LARGE), "open a stage");
    for (uint32_t at = 0; at < LARGE; at += PART) {
        memset(part, (int)(at / PART + 1), PART);
        must(ocssd_stage_append(target, 0, at, part, PART), "append to the stage");
    }
    must(ocssd_kv_store_staged(target, "film", 4, 0, LARGE, OCSSD_FUA), "store what is staged");
    for (uint32_t at = 0; at < LARGE; at += PART) {
        must(ocssd_kv_retrieve(target, "film", 4, at, part, PART, &length), "retrieve");
        if (length != LARGE || part[0] != at / PART + 1 || part[PART - 1] != at / PART + 1) {
            fprintf(stderr, "the part at %u came back as another\n", at);
            return 1;
        }
    }
    printf("a value of %llu bytes came back\n", (unsigned long long)length);
    must(ocssd_target_close(&target), "close the target");
    must(ocssd_drive_close(&drive), "close the drive");
    return sum != ACCOUNTS * 100 || accounts != ACCOUNTS;
}
