/* A log in zones, as a log-structured store writes it: records are appended with 16 in progress, each completion says where its
 * record landed, the oldest zone is reset when the newest is full, and every record that is left is read back.
 *
 *     cc zones.c $(pkg-config --cflags --libs ocssd) -o zones && ./zones
 */

#include <ocssd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 2048
#define RECORD_BYTES 65536
#define DEPTH 16
#define KEPT_ZONES 3

struct log {
    ocssd_target *target;
    ocssd_zones zones;
    uint8_t *record;
    uint64_t places[RECORDS];
    uint64_t left;
    uint64_t newest, oldest;
    int next, ended;
};

static void must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, ocssd_last_error());
        exit(1);
    }
}

/* An append that is in progress. */
static struct record {
    struct log *log;
    int number;
} records[RECORDS];

/* Called by ocssd_target_poll: the reply says where the record lies. */
static void ended(void *context, const ocssd_reply *reply)
{
    struct record *record = (struct record *)context;

    must(reply->result, "append");
    record->log->places[record->number] = reply->offset;
    record->log->ended++;
}

/* Begins with the next zone, and empties the oldest if there are more than the log keeps. */
static void next_zone(struct log *log)
{
    log->newest++;
    log->left = log->zones.capacity_bytes;
    if (log->newest - log->oldest == KEPT_ZONES)
        must(ocssd_zoned_manage(log->target, OCSSD_OP_RESET_ZONE, log->oldest++ * log->zones.zone_bytes, 0), "reset");
}

static void append_next(struct log *log)
{
    ocssd_request append = {0};
    struct record *record = &records[log->next];

    if (log->left < RECORD_BYTES)
        next_zone(log);
    record->log = log;
    record->number = log->next++;
    memset(log->record, record->number, RECORD_BYTES);
    memcpy(log->record, &record->number, sizeof record->number);
    append.op = OCSSD_OP_APPEND;
    append.offset = log->newest * log->zones.zone_bytes;
    append.bytes = RECORD_BYTES;
    /* What is appended is copied by the call, so that one record serves all. */
    append.data = log->record;
    log->left -= RECORD_BYTES;
    must(ocssd_target_submit_for_reply(log->target, &append, ended, record), "submit");
}

int main(void)
{
    static struct log log;
    ocssd_drive *drive = NULL;
    ocssd_zone zones[KEPT_ZONES];
    uint64_t start = 0, end = 0;
    uint32_t matching = 0;
    int checked = 0;

    must(ocssd_drive_open("cnex-tlc", NULL, &drive), "open the drive");
    must(ocssd_target_open(drive, "zns:width=1", "pu:0-7", &log.target), "open zns");
    must(ocssd_zoned_info(log.target, &log.zones), "zones");
    printf("%u zones of %llu MiB, %u may be open\n", log.zones.zone_count, (unsigned long long)log.zones.capacity_bytes >> 20,
           log.zones.open_max);
    log.record = malloc(RECORD_BYTES);
    if (!log.record)
        return 1;
    log.left = log.zones.capacity_bytes;

    must(ocssd_drive_now(drive, &start), "time");
    while (log.ended < RECORDS) {
        while (log.next < RECORDS && log.next - log.ended < DEPTH)
            append_next(&log);
        must(ocssd_target_poll(log.target, DEPTH), "poll");
    }
    must(ocssd_target_flush(log.target), "flush");
    must(ocssd_drive_now(drive, &end), "time");
    printf("%d appends and a flush in %.2f ms of the drive's time\n", RECORDS, (double)(end - start) / 1e6);

    must(ocssd_zoned_report(log.target, 0, OCSSD_ZONE_FULL, zones, KEPT_ZONES, &matching), "report");
    printf("%u full zones\n", matching);
    for (int number = 0; number < RECORDS; number++) {
        int found;

        /* Its zone was reset. */
        if (log.places[number] < log.oldest * log.zones.zone_bytes)
            continue;
        must(ocssd_target_read(log.target, log.record, RECORD_BYTES, log.places[number]), "read");
        memcpy(&found, log.record, sizeof found);
        if (found != number) {
            fprintf(stderr, "record %d came back as %d\n", number, found);
            return 1;
        }
        checked++;
    }
    printf("%d records read back\n", checked);
    free(log.record);
    must(ocssd_target_close(&log.target), "close the target");
    must(ocssd_drive_close(&drive), "close the drive");
    return checked == 0;
}
