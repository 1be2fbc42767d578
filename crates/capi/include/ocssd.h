/* ocssd.h: virtual open-channel SSDs in your process.
 *
 * A drive comes from a preset, a drive file or an image. Commands of NVMe and OCSSD 2.0 or 1.2 go to it as 64-byte entries
 * with plain pointers of this process, waited for (ocssd_admin, ocssd_io) or through queue pairs (ocssd_queue_*). Targets
 * (ocssd_target_*) lie on its parallel units: of blocks (pblk, linear, block_ssd, ox-block), of zones (zns, ocssd_zoned_*), of
 * pages (eleos, ocssd_pages_*), of keys and values (kv, kv-block, ocssd_kv_*), of tables and logs (lightlsm, table-block,
 * ocssd_tables_*). Both work on one drive; raw commands may not change parallel units of an open target. See ocssd(3), and
 * docs/c.md.
 *
 * Errors. Functions return 0 or a count, or a negative number of errno.h; ocssd_last_error() says it in a sentence. ocssd_admin
 * and ocssd_io return the drive's status if that is above 0. If the library finds a bug in itself, the call returns
 * -ENOTRECOVERABLE, and so does every later call on that drive; close it and what is open on it.
 *
 * Pointers. Handles, structs and texts must be what the function asks for; NULL and misaligned pointers are refused with
 * -EINVAL, others cannot be checked. A close takes the address of a handle and sets it to NULL: closing twice is -EINVAL and does
 * no harm, but other copies of the handle are dangling. Queues and targets are closed before their drive. Structs are passed
 * with every field set; begin with `= {0}`.
 *
 * Threads. Different drives share nothing and may be used by different threads at once. A drive with its queues and targets is for
 * one thread at a time, any thread: guard it with a lock of your own, or keep it in one thread. A call that comes while
 * another thread is inside the same drive is refused with -EBUSY and changes nothing. Closing must not race with other calls.
 * Texts that are returned belong to the thread that asked. Callbacks are called by the thread that polls, within the poll.
 *
 * Time. With OCSSD_CLOCK_VIRTUAL time passes only when the library waits, so that a run is as fast as the processor and repeats
 * exactly; a poll jumps to the next completion. With OCSSD_CLOCK_WALL commands take as long as on the drive.
 *
 * Written by `cargo xtask c-header`; do not edit. */

#ifndef OCSSD_H
#define OCSSD_H

#include <stdint.h>
#ifdef __cplusplus
#define OCSSD_STATIC_ASSERT(fact, words) static_assert(fact, words)
#else
#define OCSSD_STATIC_ASSERT(fact, words) _Static_assert(fact, words)
#endif

// The key has this value from now on.
#define OCSSD_KV_STORE 0

// Reads a value.
#define OCSSD_KV_RETRIEVE 1

// The key does not exist from now on.
#define OCSSD_KV_DELETE 2

// Asks whether a key exists.
#define OCSSD_KV_EXIST 3

// Lists keys, from one on.
#define OCSSD_KV_LIST 4

// Stores and deletes several keys, all at once.
#define OCSSD_KV_BATCH 5

// A store or a deletion is refused if the key does not exist; without it a deletion of such a key succeeds.
#define OCSSD_MUST_EXIST 16

// A store is refused if the key exists.
#define OCSSD_MUST_NOT_EXIST 32

// Begins a session, or resumes one that exists; the reply tells how far it came.
#define OCSSD_PAGES_OPEN_SESSION 0

// Ends a session. Its pages stay.
#define OCSSD_PAGES_CLOSE_SESSION 1

// Stores the pages of a buffer and deletes others, all at once.
#define OCSSD_PAGES_FLUSH 2

// Reads a page.
#define OCSSD_PAGES_READ 3

// Asks how much is stored.
#define OCSSD_PAGES_STAT 4

// Queue for admin commands; a drive has one.
#define OCSSD_QUEUE_ADMIN 0

// Queue for I/O commands.
#define OCSSD_QUEUE_IO 1

// Fills `data`.
#define OCSSD_OP_READ 0

// Stores `data`; on a target with zones at a zone's write pointer.
#define OCSSD_OP_WRITE 1

// Ends when everything that ended before is durable. Offset and bytes are 0. Targets of every kind have it.
#define OCSSD_OP_FLUSH 2

// The range reads as zeroes, and its memory on the drive may be used for something else.
#define OCSSD_OP_DISCARD 3

// The range reads as zeroes.
#define OCSSD_OP_WRITE_ZEROES 4

// Empties the zone that begins at the offset. Bytes are 0, of this and of all that follow but the last two.
#define OCSSD_OP_RESET_ZONE 5

// Of `zns`: stores `data` at the write pointer of the zone that begins at the offset; the reply says where that was. It has
// bytes.
#define OCSSD_OP_APPEND 6

// Of `zns`: opens the zone that begins at the offset.
#define OCSSD_OP_OPEN_ZONE 7

// Of `zns`: closes the zone that begins at the offset.
#define OCSSD_OP_CLOSE_ZONE 8

// Of `zns`: the zone that begins at the offset becomes full, and takes no more writes until it is reset.
#define OCSSD_OP_FINISH_ZONE 9

// Of `zns`: the read only zone that begins at the offset becomes offline.
#define OCSSD_OP_OFFLINE_ZONE 10

// Of `zns`: commits a zone's random write area up to the block at the offset, with that.
#define OCSSD_OP_COMMIT_AREA 11

// Of `zns`: gives the empty zone that begins at the offset an extension, the 64 bytes of `data`.
#define OCSSD_OP_SET_EXTENSION 12

// Of `zns`: fills `data`, an array of `ocssd_zone`, with the zone at the offset and those behind it, as many as `bytes` has
// room for. Flags are a state that only zones in it are wanted of, or 0.
#define OCSSD_OP_REPORT_ZONES 13

// What changes something ends only when it is durable: a write, an append, a flush of pages, a change of keys.
#define OCSSD_FUA 1

// An action is for all zones it is meant for, and the offset is 0: to open all closed ones, to close all open ones, to finish
// all open and closed ones, to reset all that were written, to take all read only ones offline.
#define OCSSD_ALL_ZONES 2

// A zone that is opened gets a random write area.
#define OCSSD_WITH_AREA 4

// The content of a flush of pages or of a store is what a stage holds.
#define OCSSD_STAGED 8

// Time passes only when the library waits: a run takes as long as the processor needs, and repeats exactly.
#define OCSSD_CLOCK_VIRTUAL 0

// Time is the machine's: a command takes as long as it did on the drive.
#define OCSSD_CLOCK_WALL 1

// Of an image: it may be changed, and no other process has it.
#define OCSSD_ACCESS_WRITE 0

// Of an image: it is looked at, by any number of processes. Commands that would change it fail.
#define OCSSD_ACCESS_INSPECT 1

// Begins a table or a log under a free name.
#define OCSSD_TABLES_CREATE 0

// Adds to the end of an unpublished table or of a log; the reply says at which byte.
#define OCSSD_TABLES_APPEND 1

// Ends when every byte that was appended to the log before is durable.
#define OCSSD_TABLES_SYNC 2

// Reads bytes of a published table or of a log.
#define OCSSD_TABLES_READ 3

// Reads the attributes of a published table or of a log.
#define OCSSD_TABLES_ATTRIBUTES 4

// The table is complete: it can be read, survives a power cut, and has these attributes. An operation, and of a row of an edit.
#define OCSSD_TABLES_PUBLISH 5

// The table or log is gone; a table that is not published is given up. An operation, and of a row of an edit.
#define OCSSD_TABLES_DELETE 6

// Carries out the rows of an edit, all or none.
#define OCSSD_TABLES_EDIT 7

// Lists published tables, and logs.
#define OCSSD_TABLES_LIST 8

// Of a row of an edit: the published table or log has these attributes from now on.
#define OCSSD_TABLES_DESCRIBE 9

// Invisible until it is published, then constant.
#define OCSSD_TABLE 0

// Visible from its creation; grows.
#define OCSSD_LOG 1

// The target speaks of blocks: `pblk`, `linear`, `block_ssd`, `ox-block`.
#define OCSSD_INTERFACE_BLOCKS 0

// The target speaks of zones: `zns`.
#define OCSSD_INTERFACE_ZONES 1

// The target speaks of pages: `eleos`.
#define OCSSD_INTERFACE_PAGES 2

// The target speaks of keys and values: `kv`, `kv-block`.
#define OCSSD_INTERFACE_KEYS 3

// The target speaks of tables and logs: `lightlsm`, `table-block`.
#define OCSSD_INTERFACE_TABLES 4

// Of a transaction: makes it true. Offset and bytes are 0.
#define OCSSD_OP_COMMIT 14

// Of a transaction: gives it up. Offset and bytes are 0.
#define OCSSD_OP_ABORT 15

// Nothing is written.
#define OCSSD_ZONE_EMPTY 1

// A write opened it; the target may close it for another.
#define OCSSD_ZONE_IMPLICITLY_OPENED 2

// It was opened by a request.
#define OCSSD_ZONE_EXPLICITLY_OPENED 3

// It holds an active resource and is not open.
#define OCSSD_ZONE_CLOSED 4

// It can only be read, or taken offline.
#define OCSSD_ZONE_READ_ONLY 13

// It can only be read, until it is reset.
#define OCSSD_ZONE_FULL 14

// It can neither be written nor read.
#define OCSSD_ZONE_OFFLINE 15

// Bytes of a zone's extension.
#define OCSSD_EXTENSION_BYTES 64

// An open drive.
typedef struct ocssd_drive ocssd_drive;

// A queue pair of a drive.
typedef struct ocssd_queue ocssd_queue;

// A target on a drive.
typedef struct ocssd_target ocssd_target;

// The drive's shape and rules. Names are those of the geometry page of OCSSD 2.0 in docs/ppa.md; counts of sectors unless
// another unit is in the name.
typedef struct ocssd_geometry {
    // What the controller speaks: 0x20 for OCSSD 2.0, 0x12 for 1.2.
    uint32_t revision;
    // Groups.
    uint32_t groups;
    // Parallel units of a group.
    uint32_t pus_per_group;
    // Chunks of a parallel unit.
    uint32_t chunks_per_pu;
    // Sectors of a chunk.
    uint32_t sectors_per_chunk;
    // Bytes of a sector.
    uint32_t sector_bytes;
    // Bytes of metadata beside a sector; 0 for none.
    uint32_t oob_bytes;
    // Sectors a write is a multiple of, and begins at a multiple of.
    uint32_t ws_min;
    // Sectors of a whole write unit.
    uint32_t ws_opt;
    // Sectors that must be written after one before it can be read; 0 for none.
    uint32_t mw_cunits;
    // Chunks open at once in the drive; 0 for no limit.
    uint32_t max_open_chunks;
    // Chunks open at once in a parallel unit; 0 for no limit.
    uint32_t max_open_chunks_per_pu;
    // Commands in progress at once in the drive.
    uint32_t queue_depth;
    // MCCAP: bit 0 vector copy, bit 1 a free chunk may be reset again, bit 2 an open chunk may be reset.
    uint32_t capabilities;
    // Most bytes of data of one command (MDTS).
    uint64_t transfer_bytes_max;
    // Bits of the group in an address.
    uint8_t group_bits;
    // Bits of the parallel unit in an address.
    uint8_t pu_bits;
    // Bits of the chunk in an address.
    uint8_t chunk_bits;
    // Bits of the sector in an address.
    uint8_t sector_bits;
    // Zero.
    uint32_t reserved;
} ocssd_geometry;

// Where a sector lies.
typedef struct ocssd_address {
    // The group.
    uint32_t group;
    // The parallel unit in the group.
    uint32_t pu;
    // The chunk in the parallel unit.
    uint32_t chunk;
    // The sector in the chunk.
    uint32_t sector;
} ocssd_address;

// How a drive is opened. A struct of zeros is the default for all of it.
typedef struct ocssd_drive_options {
    // `OCSSD_CLOCK_VIRTUAL` or `OCSSD_CLOCK_WALL`.
    uint32_t clock;
    // `OCSSD_ACCESS_WRITE` or `OCSSD_ACCESS_INSPECT`.
    uint32_t access;
    // 1 to open an image although records of it are damaged: their chunks are OFFLINE from then on. Else 0.
    uint32_t accept_damage;
    // Texts in `settings`.
    uint32_t settings_count;
    // Settings on top of the drive's own, each as "media.erase=5ms" (docs/drive.md).
    const char *const *settings;
} ocssd_drive_options;

// What a target of keys and values takes. It never changes.
typedef struct ocssd_kv_limits {
    // Bytes of keys and values that fit at least.
    uint64_t capacity_bytes;
    // Bytes of a key; at least 1.
    uint32_t key_bytes_max;
    // Bytes of a value.
    uint32_t value_bytes_max;
    // Changes of a batch.
    uint32_t batch_changes_max;
    // Stages at once; their names are below.
    uint32_t stages_max;
    // Bytes of a stage.
    uint32_t stage_bytes_max;
    // 1 if keys are listed in ascending order of their bytes, 0 if in an order of the target's.
    uint32_t lists_in_order;
} ocssd_kv_limits;

// One change of a batch.
typedef struct ocssd_kv_change {
    // `OCSSD_KV_STORE` or `OCSSD_KV_DELETE`.
    uint32_t op;
    // `OCSSD_MUST_EXIST`, `OCSSD_MUST_NOT_EXIST`, or 0; judged with the changes above applied.
    uint32_t flags;
    // The key. If several changes name it the last one stays.
    const void *key;
    // The value of a store; NULL without bytes.
    const void *value;
    // Bytes of the value.
    uint64_t value_bytes;
    // Bytes of the key.
    uint32_t key_bytes;
    // Zero.
    uint32_t reserved;
} ocssd_kv_change;

// A request to a target of keys and values. What an operation does not name is 0 or NULL.
typedef struct ocssd_kv_request {
    // `OCSSD_KV_STORE` and so on.
    uint32_t op;
    // `OCSSD_FUA` of what changes something; `OCSSD_MUST_EXIST` of a store or deletion; `OCSSD_MUST_NOT_EXIST` and
    // `OCSSD_STAGED` of a store.
    uint32_t flags;
    // The key, of all but batches: any bytes. Of a list the first that may be listed, if it exists or not.
    const void *key;
    // Bytes of the key; 0 of a list is before all keys.
    uint32_t key_bytes;
    // Of a list: only keys that begin with so many first bytes of the key.
    uint32_t prefix_bytes;
    // Of a retrieve the first byte of the value.
    uint64_t offset;
    // Of a store the value, which may change when the call that submits returns; NULL if it is staged. Of a retrieve or a list
    // where to put what is read: it must stay until the request has ended.
    void *data;
    // Bytes of the value, staged or not; of a retrieve or a list how many bytes there is room for.
    uint64_t bytes;
    // Of a batch its changes, which may change when the call that submits returns, as keys and values may.
    const struct ocssd_kv_change *changes;
    // How many.
    uint32_t change_count;
    // The stage of `OCSSD_STAGED`.
    uint32_t stage;
} ocssd_kv_request;

// What came of a request to a target. What does not apply is zero.
typedef struct ocssd_reply {
    // 0, or a negative number of errno.h: `ocssd_last_error` says why within the callback.
    int result;
    // The drive's status (SCT and SC), 0 for success.
    uint16_t status;
    // Zero.
    uint16_t reserved;
    // Where an append landed: its first byte on the target, or in the table.
    uint64_t offset;
    // How many: zones that match a report, from its zone on; tables from a name on; keys of a list; pages that are stored.
    uint64_t count;
    // Bytes: of the whole page or value; of a list of keys; of all pages; that were read of a table; of all attributes.
    uint64_t bytes;
    // Of a session and of a flush: the last flush of the session that is applied.
    uint64_t applied;
    // Of a session and of a flush: the last flush of the session that survives a power cut.
    uint64_t durable;
    // Which row of a page table or of an edit, or entry of a batch, it was refused for, from 0; all ones without.
    uint64_t entry;
} ocssd_reply;

// Called by `ocssd_target_poll` when a request has ended whose reply has more to tell. The reply is there during the call. The
// rules are those of `ocssd_request_ended`.
typedef void (*ocssd_reply_ended)(void *context, const struct ocssd_reply *reply);

// What a target of pages takes. It never changes.
typedef struct ocssd_pages_limits {
    // Bytes of all pages that fit.
    uint64_t capacity_bytes;
    // Pages that fit.
    uint64_t pages_max;
    // Bytes of a flush.
    uint32_t flush_bytes_max;
    // Rows of a page table.
    uint32_t flush_pages_max;
    // Bytes of a page.
    uint32_t page_bytes_max;
    // What the places of pages in a buffer are multiples of.
    uint32_t page_align_bytes;
    // Sessions that are open at once.
    uint32_t sessions_max;
    // Stages at once; their names are below.
    uint32_t stages_max;
    // Bytes of a stage.
    uint32_t stage_bytes_max;
    // Zero.
    uint32_t reserved;
} ocssd_pages_limits;

// A row of a page table: rows are in the order of their places in the buffer, and name each page once.
typedef struct ocssd_page {
    // The page's name.
    uint64_t page;
    // Its first byte in the buffer; 0 of a deletion.
    uint32_t offset;
    // Its bytes; 0 deletes the page, which need not exist.
    uint32_t bytes;
} ocssd_page;

// A request to a target of pages. What an operation does not name is 0 or NULL.
typedef struct ocssd_pages_request {
    // `OCSSD_PAGES_OPEN_SESSION` and so on.
    uint32_t op;
    // Of a flush: `OCSSD_FUA` if it ends only when it is durable, `OCSSD_STAGED` if the buffer is what a stage holds.
    uint32_t flags;
    // The session, of all but reads and stat: any number.
    uint64_t session;
    // Of a flush its number in the session, from 1 on.
    uint64_t number;
    // Of a read the page.
    uint64_t page;
    // Of a read the first byte of the page.
    uint64_t offset;
    // Of a flush the buffer, which may change when the call that submits returns; NULL if it is staged. Of a read where to put
    // the page: it must stay until the request has ended.
    void *data;
    // Bytes of the buffer, staged or not; of a read how many bytes there is room for, 0 to ask for the page's length.
    uint64_t bytes;
    // Of a flush the page table, which may change when the call that submits returns.
    const struct ocssd_page *pages;
    // Rows of it.
    uint32_t page_count;
    // The stage of `OCSSD_STAGED`.
    uint32_t stage;
} ocssd_pages_request;

// An NVMe command: the submission entry, and the memory it moves.
//
// `data` is what DPTR would point to; the entry's own DPTR is not looked at. Metadata and address lists may be given here,
// or by the entry (MPTR, LBAL in CDW10-11, DLBAL in CDW14-15) as addresses of this process, if the pointer here is NULL: then
// the entry's count says how long they are, `oob_bytes` of metadata per sector, 32 bytes per chunk of a vector reset, 8
// bytes per LBA. A command with one LBA holds it in the entry itself. Data, metadata and lists must not overlap, and must
// stay where they are until the command has ended.
typedef struct ocssd_command {
    // The 64 bytes of the submission entry, little-endian. The command identifier is the caller's: it comes back in the
    // completion, and may be used twice.
    uint8_t entry[64];
    // What is written, or where to put what is read; NULL for none.
    void *data;
    // Bytes of data.
    uint64_t data_bytes;
    // Metadata, or where a vector reset puts the chunks' descriptors; NULL for what MPTR points to.
    void *metadata;
    // Bytes of metadata.
    uint64_t metadata_bytes;
    // The list of LBAs of a vector command with more than one, or of the blocks of a Set Bad Block Table (F1h) of 1.2; NULL
    // for what LBAL (CDW10-11) points to. The list of F1h may also be given as `data`.
    const uint64_t *lbas;
    // The list of destinations of a vector copy, likewise; NULL for what DLBAL points to.
    const uint64_t *destinations;
    // LBAs of the list.
    uint32_t lba_count;
    // LBAs of the list of destinations.
    uint32_t destination_count;
} ocssd_command;

// How a command ended: the 16-byte completion entry, byte for byte on little-endian machines.
typedef struct ocssd_completion {
    // DW1:DW0. Of vector commands the bitmap of entries that failed, bit 0 the first.
    uint64_t result;
    // Submission queue head: entries taken from the queue so far, modulo its depth.
    uint16_t sq_head;
    // The queue: 0 admin, and of commands that were waited for.
    uint16_t sq_id;
    // The command's identifier.
    uint16_t cid;
    // Bit 0 the phase tag, bits 11:1 the status (SCT and SC), bit 15 DNR: doing the same again would fail again.
    uint16_t status;
} ocssd_completion;

// Called by `ocssd_queue_poll` when a command has ended. It may submit, and call everything but polls and closes of the
// queue that calls it. It must return: no longjmp, no C++ exception.
typedef void (*ocssd_command_ended)(void *context, const struct ocssd_completion *completion);

// What a target of tables takes. It never changes.
typedef struct ocssd_tables_limits {
    // Bytes of tables and logs that fit at least.
    uint64_t capacity_bytes;
    // Bytes of a table or log.
    uint64_t table_bytes_max;
    // Tables and logs, those that are not published included.
    uint32_t tables_max;
    // Bytes of the attributes of one.
    uint32_t attributes_bytes_max;
    // Rows of an edit.
    uint32_t edits_max;
    // Zero.
    uint32_t reserved;
} ocssd_tables_limits;

// A row of an edit. Rows apply in their order: a name that is deleted above is free below.
typedef struct ocssd_table_edit {
    // `OCSSD_TABLES_PUBLISH`, `OCSSD_TABLES_DELETE` or `OCSSD_TABLES_DESCRIBE`.
    uint32_t op;
    // Bytes of its attributes; 0 of a deletion.
    uint32_t attributes_bytes;
    // Which table or log.
    uint64_t table;
    // Its attributes, any bytes; NULL without.
    const void *attributes;
} ocssd_table_edit;

// A published table or a log, as a list shows it.
typedef struct ocssd_table {
    // Its name.
    uint64_t table;
    // Its bytes.
    uint64_t bytes;
    // `OCSSD_TABLE` or `OCSSD_LOG`.
    uint32_t kind;
    // Bytes of its attributes.
    uint32_t attributes_bytes;
} ocssd_table;

// A request to a target of tables. What an operation does not name is 0 or NULL.
typedef struct ocssd_tables_request {
    // `OCSSD_TABLES_CREATE` and so on.
    uint32_t op;
    // Of a creation `OCSSD_TABLE` or `OCSSD_LOG`.
    uint32_t kind;
    // The table or log, of all but edits: any number. Of a list the first that may be listed, if it exists or not.
    uint64_t table;
    // Of a creation the level of the tree it will be of, 0 to 255: tables of a level are expected to be deleted together.
    uint32_t level;
    // Of a creation who writes it, 0 to 255: what different streams write may lie on different parallel units.
    uint32_t stream;
    // Of a read the first byte. Of a creation how many bytes it will have, 0 if that is not known.
    uint64_t offset;
    // Of an append what is added, of a publication the attributes: both may change when the call that submits returns. Of a read,
    // of attributes and of a list (an array of `ocssd_table`) where to put what is read: it must stay until the request has ended.
    void *data;
    // Bytes of the data, or that there is room for.
    uint64_t bytes;
    // Of an edit its rows, which may change when the call that submits returns, as their attributes may.
    const struct ocssd_table_edit *edits;
    // How many.
    uint32_t edit_count;
    // Zero.
    uint32_t reserved;
} ocssd_tables_request;

// What a target is like. Of targets that do not speak of blocks, everything about these is 0.
typedef struct ocssd_info {
    // Blocks.
    uint64_t block_count;
    // Blocks of a zone, if it must be written zone by zone (`linear`, `zns`); 0 else.
    uint64_t zone_blocks;
    // Zones; 0 without.
    uint64_t zone_count;
    // Newest blocks of a zone that cannot be read until more are written; 0 without.
    uint64_t unreadable_tail;
    // Most bytes of a request that is submitted. Those that are waited for have no limit.
    uint64_t request_bytes_max;
    // Bytes of a block: offsets and lengths are multiples of it.
    uint32_t block_bytes;
    // Blocks that writes are best a multiple of, and must be on a target with zones.
    uint32_t write_unit;
    // Most requests that were submitted and not told yet.
    uint32_t depth;
    // `OCSSD_INTERFACE_BLOCKS` and so on: what it speaks of, and so which calls it takes.
    uint32_t interface;
} ocssd_info;

// A request to a target of blocks or zones. Offset and bytes are multiples of the target's `block_bytes`.
typedef struct ocssd_request {
    // `OCSSD_OP_READ` and so on.
    uint32_t op;
    // `OCSSD_FUA` of a write, and so on; 0 without.
    uint32_t flags;
    // First byte.
    uint64_t offset;
    // How many bytes; at most `request_bytes_max` of reads and writes.
    uint64_t bytes;
    // What is written: it may change when the call that submits returns. Or where to put what is read: it must stay until the
    // request has ended. NULL of others.
    void *data;
} ocssd_request;

// Called by `ocssd_target_poll` when a block request has ended: `result` is 0 or a negative number of errno.h, `status` the
// drive's (SCT and SC, 0 for success); `ocssd_last_error` says what failed. It may submit, and call everything but polls and
// closes of the target that calls it. It must return: no longjmp, no C++ exception.
typedef void (*ocssd_request_ended)(void *context, int result, uint16_t status);

// How much of transactions a target takes. It never changes.
typedef struct ocssd_transaction_limits {
    // Bytes of one; a block that is written twice counts twice.
    uint64_t bytes_max;
    // Transactions that are open at a time; fewer while chunks are short.
    uint32_t open_max;
    // Zero.
    uint32_t reserved;
} ocssd_transaction_limits;

// The zones of a target, and its limits. They never change.
typedef struct ocssd_zones {
    // Bytes from one zone's begin to the next.
    uint64_t zone_bytes;
    // Bytes that a zone holds, from its begin.
    uint64_t capacity_bytes;
    // Most bytes of an append.
    uint64_t append_bytes_max;
    // Bytes of a random write area, from its zone's write pointer on; 0 if zones have none.
    uint64_t area_bytes;
    // Bytes by which an area is committed.
    uint64_t area_granularity_bytes;
    // How many zones.
    uint32_t zone_count;
    // Bytes of a block.
    uint32_t block_bytes;
    // Most zones that are open at once; 0 for no limit.
    uint32_t open_max;
    // Most zones that are open or closed at once; 0 for no limit.
    uint32_t active_max;
    // Most zones that have an area at once.
    uint32_t areas_max;
    // Bytes of a zone's extension; 0 if zones take none.
    uint32_t extension_bytes;
    // 1 if reads behind a write pointer give zeroes, 0 if they fail.
    uint32_t reads_zeroes;
    // Zero.
    uint32_t reserved;
} ocssd_zones;

// A zone. Places are bytes of the target.
typedef struct ocssd_zone {
    // Its first byte.
    uint64_t offset;
    // Bytes that it holds, from its first on.
    uint64_t capacity;
    // The byte that is written next; all ones of zones that are full, read only or offline.
    uint64_t write_pointer;
    // `OCSSD_ZONE_EMPTY` and so on.
    uint32_t state;
    // 1 if it has a random write area, else 0.
    uint8_t has_area;
    // 1 if it has an extension, else 0.
    uint8_t has_extension;
    // Zero.
    uint8_t reserved[2];
    // Its extension; zeroes if it has none.
    uint8_t extension[OCSSD_EXTENSION_BYTES];
} ocssd_zone;

// One chunk in the chunk information log page, 32 bytes, little-endian (OCSSD 2.0 section 3.2.2).
typedef struct ocssd_chunk {
    // 1 free, 2 closed, 4 open, 8 offline.
    uint8_t state;
    // 1: written in order.
    uint8_t kind;
    // Wear index: 0 new, 255 at its end.
    uint8_t wear_index;
    // Zero.
    uint8_t reserved[5];
    // LBA of its first sector.
    uint64_t slba;
    // Sectors.
    uint64_t sectors;
    // The next sector to write, from its first; all ones if it is offline.
    uint64_t write_pointer;
} ocssd_chunk;





#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The LBA of a sector of an OCSSD 2.0 drive.
//
// Errors: -EINVAL if the drive has no such sector.
int ocssd_address_pack(const struct ocssd_geometry *geometry,
                       const struct ocssd_address *address,
                       uint64_t *lba);

// Where the sector of an LBA of an OCSSD 2.0 drive lies.
//
// Errors: -EINVAL if the drive has no such LBA.
int ocssd_address_unpack(const struct ocssd_geometry *geometry, uint64_t lba, struct ocssd_address *address);

// Opens a drive: `source` is a preset ("westlake", "tiny", ...: a fresh drive in memory), a drive file that ends in .toml (a
// fresh drive in memory), or an image (the drive as it was left). `options` may be NULL. Real bytes are stored.
//
// Errors: -ENOENT if there is no such preset or file, -EINVAL for settings or an image that cannot be used, -EBUSY if
// another process has the image; `*drive` is then NULL.
int ocssd_drive_open(const char *source,
                     const struct ocssd_drive_options *options,
                     struct ocssd_drive **drive);

// Opens a fresh drive in memory of a drive file's text (docs/drive.md), as `ocssd_drive_open` else.
int ocssd_drive_open_toml(const char *toml,
                          const struct ocssd_drive_options *options,
                          struct ocssd_drive **drive);

// Makes an image at `path` of a fresh drive, and opens it. `source` is a preset or a drive file. A file that exists is left
// alone.
//
// Errors: -EEXIST if there is such a file; else as `ocssd_drive_open`.
int ocssd_drive_create(const char *path,
                       const char *source,
                       const struct ocssd_drive_options *options,
                       struct ocssd_drive **drive);

// Closes a drive whose targets and queues are closed, and sets `*drive` to NULL, so that nothing is closed twice. What was
// written to an image is on disk afterwards. Virtual time passes until the drive is idle; the machine's is waited for.
//
// Errors: -EBUSY if a target or a queue is open, -EINVAL if the drive is NULL (closed already): nothing is changed then.
// -EIO if the image could not be kept, -ENOTRECOVERABLE after a bug: the drive is closed all the same.
int ocssd_drive_close(struct ocssd_drive **drive);

// Gets the drive's shape and rules.
int ocssd_drive_geometry(struct ocssd_drive *drive, struct ocssd_geometry *geometry);

// Puts the drive's settings, as a drive file has them (TOML), into `text` with room for `bytes` bytes: as much as fits, with a
// zero at its end. Returns the length of all of it, without the zero; `text` may be NULL to ask for that.
int ocssd_drive_settings(struct ocssd_drive *drive,
                         char *text,
                         uint64_t bytes);

// Gets the drive's time in nanoseconds since it was opened. It never falls.
int ocssd_drive_now(struct ocssd_drive *drive, uint64_t *nanoseconds);

// Lets time pass until a completion waits to be told by a poll of any queue or target of the drive, `nanoseconds` at most. With
// the machine's clock the thread sleeps; without anything in progress it is how virtual time passes. Returns how many
// completions wait.
int ocssd_drive_wait(struct ocssd_drive *drive,
                     uint64_t nanoseconds);

// The sentence of this thread's last failed call; empty if none failed. It says what was expected, what was found and what
// to change. It is valid until the next call of this thread that fails, or the end of the thread.
const char *ocssd_last_error(void);

// The library's version, as "0.1.0".
const char *ocssd_version(void);

// Gets what a target of keys and values takes.
//
// Errors: -EOPNOTSUPP of a target that does not speak of keys.
int ocssd_kv_info(struct ocssd_target *target, struct ocssd_kv_limits *limits);

// Stores a value of `bytes` bytes, which may be none, under a key; the whole value or nothing of it. Flags are `OCSSD_FUA` to
// return only when it is durable, and `OCSSD_MUST_EXIST` or `OCSSD_MUST_NOT_EXIST`. Values of more than 16 MiB are staged:
// `ocssd_stage_open`, `ocssd_kv_store_staged`.
//
// Errors: -EINVAL for a key of 0 or too many bytes, -EFBIG for a value that is too long, -ENOENT and -EEXIST if the key does not
// exist, or exists, -ENOSPC if there is no room. Nothing is changed then.
int ocssd_kv_store(struct ocssd_target *target,
                   const void *key,
                   uint32_t key_bytes,
                   const void *data,
                   uint64_t bytes,
                   uint32_t flags);

// Stores the `bytes` bytes that stage `stage` holds under a key, which ends the stage. Flags and errors as `ocssd_kv_store`;
// -EINVAL if the stage is not begun or holds another number of bytes. A stage that is refused stays.
int ocssd_kv_store_staged(struct ocssd_target *target,
                          const void *key,
                          uint32_t key_bytes,
                          uint32_t stage,
                          uint64_t bytes,
                          uint32_t flags);

// Reads a value from byte `offset` on: as many bytes as there are, and as `data` has room for with its `bytes`, at most 16
// MiB. Puts the bytes of the whole value into `value_bytes`, which may be NULL.
//
// Errors: -ENOENT if the key does not exist, -EINVAL for one that cannot be, -EIO for what cannot be read.
int ocssd_kv_retrieve(struct ocssd_target *target,
                      const void *key,
                      uint32_t key_bytes,
                      uint64_t offset,
                      void *data,
                      uint64_t bytes,
                      uint64_t *value_bytes);

// Deletes a key. Flags are `OCSSD_FUA` to return only when that is durable, and `OCSSD_MUST_EXIST` to be refused if there is none.
//
// Errors: -ENOENT if it should exist and does not, -EINVAL for a key that cannot be.
int ocssd_kv_delete(struct ocssd_target *target,
                    const void *key,
                    uint32_t key_bytes,
                    uint32_t flags);

// Asks whether a key exists: returns 0 and puts the bytes of its value into `value_bytes`, which may be NULL, or returns -ENOENT.
int ocssd_kv_exist(struct ocssd_target *target,
                   const void *key,
                   uint32_t key_bytes,
                   uint64_t *value_bytes);

// Lists keys that exist, from `key` on, that key included, in the target's order; only those that begin with the first
// `prefix_bytes` bytes of it. Puts as many as there is room for into `data`, in the form of the Key Value Command Set, which
// `ocssd_kv_next_key` takes apart. Returns how many; fewer than exist if there was no room: go on behind the last one.
//
// Errors: -EINVAL for a key that is too long, a prefix longer than the key, or room for less than 4 bytes.
int ocssd_kv_list(struct ocssd_target *target,
                  const void *key,
                  uint32_t key_bytes,
                  uint32_t prefix_bytes,
                  void *data,
                  uint64_t bytes);

// Takes a list of keys apart that lies in `bytes` bytes of `data`. `place` is 0 at first, and where the next key lies afterwards.
// Returns 1 and puts a pointer into the list into `key`, and its length into `key_bytes`; or returns 0 behind the last key.
//
// Errors: -EINVAL if it is no list, or ends too early.
int ocssd_kv_next_key(const void *data,
                      uint64_t bytes,
                      uint64_t *place,
                      const void **key,
                      uint32_t *key_bytes);

// Carries out `change_count` changes in their order, all of them or none. Flags are 0, or `OCSSD_FUA` to return only when they are
// durable.
//
// Errors: as those of its changes, with the number of the change in words; -EFBIG for more changes than `batch_changes_max`,
// or more than 16 MiB. Nothing is changed then.
int ocssd_kv_batch(struct ocssd_target *target,
                   const struct ocssd_kv_change *changes,
                   uint32_t change_count,
                   uint32_t flags);

// Submits a request. `ended` is called with `context` by the poll that finds it ended; it may be NULL. Requests take effect in the
// order in which they are submitted. `ocssd_target_submit` with `OCSSD_OP_FLUSH` makes durable what ended before.
//
// Returns 0 if it was taken. Errors: -EAGAIN as `ocssd_target_submit`; -EINVAL for a request that cannot be; -EFBIG for more
// than 16 MiB.
int ocssd_kv_submit(struct ocssd_target *target,
                    const struct ocssd_kv_request *request,
                    ocssd_reply_ended ended,
                    void *context);

// Gets what a target of pages takes.
//
// Errors: -EOPNOTSUPP of a target that does not speak of pages.
int ocssd_pages_info(struct ocssd_target *target, struct ocssd_pages_limits *limits);

// Begins the session of a number of the caller's, or resumes it. Puts the number of its last flush that is applied into `applied`,
// and of the last that survives a power cut into `durable`; both may be NULL. A new session has 0. Durable when this returns.
//
// Errors: -EMFILE if there are as many sessions as the target keeps.
int ocssd_pages_open_session(struct ocssd_target *target,
                             uint64_t session,
                             uint64_t *applied,
                             uint64_t *durable);

// Ends a session, whose pages stay, and forgets how far it came. Durable when this returns.
//
// Errors: -ENOENT if it is not open.
int ocssd_pages_close_session(struct ocssd_target *target, uint64_t session);

// Stores the pages of a buffer as flush `number` of a session, and deletes others, all or nothing: `pages` has `page_count`
// rows. A number that was applied before is answered and changes nothing, so that a flush whose answer was lost is sent again.
// Flags are 0, or `OCSSD_FUA` to return only when it is durable. Puts the last flush of the session that survives a power cut
// into `durable`, which may be NULL. Longer buffers than memory has are staged: `ocssd_stage_open`, `ocssd_pages_submit`.
//
// Errors: -ENOENT if the session is not open; -EINVAL for a number that does not come next, or rows that overlap, lie outside
// of the buffer or name a page twice; -EFBIG for more than the target takes; -ENOSPC if the pages do not fit. Nothing is
// changed then.
int ocssd_pages_flush(struct ocssd_target *target,
                      uint64_t session,
                      uint64_t number,
                      const void *data,
                      uint64_t bytes,
                      const struct ocssd_page *pages,
                      uint32_t page_count,
                      uint32_t flags,
                      uint64_t *durable);

// Reads a page from byte `offset` on: as many bytes as there are, and as `data` has room for with its `bytes`. Puts the bytes of
// the whole page into `page_bytes`, which may be NULL; with no room it is only asked for that.
//
// Errors: -ENOENT if there is no such page, -EIO for what cannot be read.
int ocssd_pages_read(struct ocssd_target *target,
                     uint64_t page,
                     uint64_t offset,
                     void *data,
                     uint64_t bytes,
                     uint64_t *page_bytes);

// Gets how many pages are stored, and how many bytes they have; both may be NULL.
int ocssd_pages_stat(struct ocssd_target *target, uint64_t *pages, uint64_t *bytes);

// Submits a request. `ended` is called with `context` by the poll that finds it ended; it may be NULL. Requests take effect in the
// order in which they are submitted. `ocssd_target_submit` with `OCSSD_OP_FLUSH` makes durable what ended before.
//
// Returns 0 if it was taken. Errors: -EAGAIN as `ocssd_target_submit`; -EINVAL for a request that cannot be; -EFBIG for a buffer
// of more than 16 MiB.
int ocssd_pages_submit(struct ocssd_target *target,
                       const struct ocssd_pages_request *request,
                       ocssd_reply_ended ended,
                       void *context);

// Carries out an admin command. `completion` may be NULL.
//
// Returns 0 for success, the status (SCT and SC, above 0) if the drive refused or failed, or a negative number of errno.h
// if the command did not reach the drive.
int ocssd_admin(struct ocssd_drive *drive,
                const struct ocssd_command *command,
                struct ocssd_completion *completion);

// Carries out an I/O command and waits for its end: virtual time passes, the machine's is waited for. `completion` may be
// NULL. Completions of other commands wait for their polls.
//
// Returns as `ocssd_admin`; -EBUSY also if the command would change parallel units of an open target.
int ocssd_io(struct ocssd_drive *drive,
             const struct ocssd_command *command,
             struct ocssd_completion *completion);

// Fills in a Geometry command (admin, E2h): `page` gets 4096 bytes.
int ocssd_prepare_geometry(struct ocssd_command *command, void *page);

// Fills in a Get Log Page command (admin, 02h) for `bytes` bytes of a page from byte `offset` on; both are multiples of 4.
// The chunk log is page 0xCA of namespace 1, 32 bytes a chunk (`struct ocssd_chunk`); pages of the controller have namespace
// 0xFFFFFFFF.
//
// Errors: -EINVAL if there is nothing to read, or a number is no multiple of 4.
int ocssd_prepare_log_page(struct ocssd_command *command,
                           uint8_t page,
                           uint32_t nsid,
                           uint64_t offset,
                           void *data,
                           uint64_t bytes);

// Fills in a vector reset (0x90), write (0x91) or read (0x92) of `count` addresses (I/O). For a reset each is the first of
// its chunk. Data and metadata may be set in the command afterwards. The list of more than one address must stay where it is
// until the command has ended.
//
// Errors: -EINVAL for another opcode, or no or more than 64 addresses.
int ocssd_prepare_vector(struct ocssd_command *command,
                         uint8_t opcode,
                         const uint64_t *lbas,
                         uint32_t count,
                         void *data,
                         uint64_t data_bytes);

// Fills in a vector copy (I/O, 93h) of `count` sectors inside the drive.
//
// Errors: -EINVAL for no or more than 64 addresses.
int ocssd_prepare_copy(struct ocssd_command *command,
                       const uint64_t *sources,
                       const uint64_t *destinations,
                       uint32_t count);

// Fills in a scalar write (0x01), read (0x02) or flush (0x00; the rest is then 0 and NULL) of `count` sectors from `lba` on
// (I/O).
//
// Errors: -EINVAL for another opcode, or no or more than 65536 sectors.
int ocssd_prepare_scalar(struct ocssd_command *command,
                         uint8_t opcode,
                         uint64_t lba,
                         uint32_t count,
                         void *data,
                         uint64_t data_bytes);

// Opens a queue pair for up to `depth` commands, 1 to 65535, of a kind (`OCSSD_QUEUE_IO`, `OCSSD_QUEUE_ADMIN`). Create and
// delete queue commands do not exist on the wire: this is how queues are made.
//
// Errors: -EINVAL for another kind or depth, -EBUSY for a second admin queue; `*queue` is then NULL.
int ocssd_queue_open(struct ocssd_drive *drive,
                     uint32_t kind,
                     uint32_t depth,
                     struct ocssd_queue **queue);

// Closes a queue whose completions were all told, and sets `*queue` to NULL. Event requests that the drive still holds are
// forgotten: their callbacks are not called.
//
// Errors: -EBUSY if commands were not told yet, or from a callback of the queue; -EINVAL if the queue is NULL (closed
// already). Nothing is changed then. -ENOTRECOVERABLE after a bug: the queue is closed all the same.
int ocssd_queue_close(struct ocssd_queue **queue);

// Submits a command. `ended` is called with `context` by the poll that finds it complete; it may be NULL. The command itself
// may change when this returns; what its pointers name must stay until then.
//
// Returns 0 if the drive has the command: how it ends is in the completion. Errors: -EAGAIN if the queue or the drive has as
// many commands as it can, -EBUSY if the command would change parallel units of an open target, -EINVAL for pointers that
// cannot be used.
int ocssd_queue_submit(struct ocssd_queue *queue,
                       const struct ocssd_command *command,
                       ocssd_command_ended ended,
                       void *context);

// Tells completions of the queue, `budget` at most, by calling back. With the machine's clock it tells what is due and never
// waits. In virtual time, if nothing is due and a command is in progress, time jumps to the next completion of the queue.
// Returns how many were told.
//
// Errors: -EBUSY within a callback of the same queue.
int ocssd_queue_poll(struct ocssd_queue *queue,
                     uint32_t budget);

// Begins a stage for `bytes` bytes of content: a flush of pages or a value, that is given in parts. `stage` is below the target's
// `stages_max` and not begun. What is staged is volatile, and nothing of it is there until a request with `OCSSD_STAGED` names the
// stage and its `bytes`, which ends it when it succeeds.
//
// Errors: -EINVAL for a name that cannot be or is begun, or more bytes than the target takes; -ENOSPC if they do not fit;
// -EOPNOTSUPP of a target that has no stages.
int ocssd_stage_open(struct ocssd_target *target,
                     uint32_t stage,
                     uint64_t bytes);

// Appends `bytes` bytes to a stage, which has `offset` bytes so far.
//
// Errors: -EINVAL if it is not begun, has more or less, or was begun for less.
int ocssd_stage_append(struct ocssd_target *target,
                       uint32_t stage,
                       uint64_t offset,
                       const void *data,
                       uint64_t bytes);

// Ends a stage and forgets its content.
//
// Errors: -EINVAL if it is not begun.
int ocssd_stage_abort(struct ocssd_target *target, uint32_t stage);

// What a status (SCT and SC, the 11 bits of `status >> 1` of a completion) is called and means, in one line. The text is valid
// until this thread asks again.
const char *ocssd_status_text(uint16_t status);

// Gets what a target of tables takes.
//
// Errors: -EOPNOTSUPP of a target that does not speak of tables.
int ocssd_tables_info(struct ocssd_target *target, struct ocssd_tables_limits *limits);

// Begins a table or a log (`kind` is `OCSSD_TABLE` or `OCSSD_LOG`) under a name that is free. What is known of it decides where it
// lies: the level of the tree it will be of and the stream that writes it, 0 to 255 each, and how many bytes it will have, 0 if
// that is not known. A log can be read from now on, a table once it is published.
//
// Errors: -EEXIST if the name is taken, -EMFILE if there are as many as the target keeps, -EFBIG for more bytes than one has.
int ocssd_tables_create(struct ocssd_target *target,
                        uint64_t table,
                        uint32_t kind,
                        uint32_t level,
                        uint32_t stream,
                        uint64_t bytes_expected);

// Adds bytes, at most 16 MiB, to the end of a table that is not published, or of a log. Puts the first byte's place in it into
// `offset`, which may be NULL. A table becomes durable when it is published, a log by `ocssd_tables_sync`.
//
// Errors: -ENOENT if there is no such table, -EROFS if it is published, -EFBIG for more bytes than one has, -ENOSPC if there is no
// room. Nothing is changed then.
int ocssd_tables_append(struct ocssd_target *target,
                        uint64_t table,
                        const void *data,
                        uint64_t bytes,
                        uint64_t *offset);

// Returns when every byte that was appended to the log before is durable, and so the log itself. `ocssd_target_flush` does that
// for all logs.
//
// Errors: -ENOENT if there is no such log, -EINVAL for a table.
int ocssd_tables_sync(struct ocssd_target *target,
                      uint64_t table);

// Reads a published table or a log from byte `offset` on: as many bytes as there are, and as `data` has room for with its `bytes`,
// at most 16 MiB. Puts how many that were into `read`, which may be NULL: fewer than asked for at the end, and 0 behind it.
//
// Errors: -ENOENT if there is no such table, -EBUSY if it is not published yet, -EIO for what cannot be read.
int ocssd_tables_read(struct ocssd_target *target,
                      uint64_t table,
                      uint64_t offset,
                      void *data,
                      uint64_t bytes,
                      uint64_t *read);

// Reads the attributes of a published table or of a log, as many bytes as `data` has room for with its `bytes`. Puts the bytes of
// all of them into `attributes_bytes`, which may be NULL.
//
// Errors: -ENOENT if there is no such table, -EBUSY if it is not published yet.
int ocssd_tables_attributes(struct ocssd_target *target,
                            uint64_t table,
                            void *data,
                            uint64_t bytes,
                            uint64_t *attributes_bytes);

// Publishes a table: it never changes any more, can be read, and has the `bytes` bytes of attributes at `attributes`. Its content
// is durable when this returns, and so are the edits and creations before.
//
// Errors: -ENOENT if there is no such table, -EROFS if it is published, -EINVAL for a log, -EFBIG for longer attributes than one
// has. Nothing is changed then.
int ocssd_tables_publish(struct ocssd_target *target,
                         uint64_t table,
                         const void *attributes,
                         uint64_t bytes);

// Deletes a table or a log, published or not; its name is free then. Durable when this returns.
//
// Errors: -ENOENT if there is no such table.
int ocssd_tables_delete(struct ocssd_target *target, uint64_t table);

// Publishes, deletes and describes any number of tables and logs as one, in the order of the `edit_count` rows: a process that
// dies, or a power cut, leaves all of that or none. So an engine needs no file that says which tables it has. Durable when this
// returns.
//
// Errors: as those of its rows, with the number of the row in words; -EBUSY to describe a table that is not published; -EFBIG for
// more rows than `edits_max`. Nothing is changed then.
int ocssd_tables_edit(struct ocssd_target *target,
                      const struct ocssd_table_edit *edits,
                      uint32_t edit_count);

// Lists published tables, and logs, by ascending name from `table` on: puts them into `tables`, with room for `count`. Puts into
// `matching`, which may be NULL, how many there are, with and without room. Returns how many were put there.
//
// Errors: -EOPNOTSUPP of a target that does not speak of tables.
int ocssd_tables_list(struct ocssd_target *target,
                      uint64_t table,
                      struct ocssd_table *tables,
                      uint32_t count,
                      uint64_t *matching);

// Submits a request. `ended` is called with `context` by the poll that finds it ended; it may be NULL. Requests take effect in the
// order in which they are submitted, so a sync or an edit need not wait for the ends of the appends before it.
// `ocssd_target_submit` with `OCSSD_OP_FLUSH` makes all logs durable.
//
// Returns 0 if it was taken. Errors: -EAGAIN as `ocssd_target_submit`; -EINVAL for a request that cannot be; -EFBIG for more
// than 16 MiB.
int ocssd_tables_submit(struct ocssd_target *target,
                        const struct ocssd_tables_request *request,
                        ocssd_reply_ended ended,
                        void *context);

// Opens a target: `what` is a kind with options as on the command line ("pblk", "pblk:block_bytes=512", "linear",
// "block_ssd:dram_cache_bytes=1048576", "zns:width=group") on the parallel units `place` ("all", "pu:0-3", "group:1"; NULL
// for all), or the name of a target that `ocssd_target_create` or the command line made, with NULL for its place. An instance
// that lies on the units is mounted, else a new one is made. Whatever is in progress on the drive ends first.
//
// Errors: -ENOENT if there is no such kind or name, -EBUSY if the units are another's or the target is open, -EINVAL for
// options or units that do not fit; `*target` is then NULL.
int ocssd_target_open(struct ocssd_drive *drive,
                      const char *what,
                      const char *place,
                      struct ocssd_target **target);

// Closes a target whose requests were all told, and sets `*target` to NULL. What it holds is durable afterwards, and the next
// mount is quick. Whatever is in progress on the drive ends first.
//
// Errors: -EBUSY if requests were not told yet, or from a callback of the target; -EINVAL if the target is NULL (closed
// already). Nothing is changed then. -EIO if the target could not put away what it keeps, -ENOTRECOVERABLE after a bug: the
// target is closed all the same.
int ocssd_target_close(struct ocssd_target **target);

// Leases parallel units to a target with a name, which an image keeps: `ocssd target create` on the command line. It is not
// opened. `place` as in `ocssd_target_open`.
//
// Errors: -ENOENT if there is no such kind, -EINVAL for a bad name or units that are another's, -EROFS if the image is only
// looked at.
int ocssd_target_create(struct ocssd_drive *drive,
                        const char *name,
                        const char *kind,
                        const char *place);

// Ends the lease of a target that is not open. What lies on its units stays until they are written again.
//
// Errors: -ENOENT if no target has this name, -EBUSY if it is open, -EROFS if the image is only looked at.
int ocssd_target_remove(struct ocssd_drive *drive, const char *name);

// Gets what a target is like.
int ocssd_target_info(struct ocssd_target *target, struct ocssd_info *info);

// Reads `bytes` bytes from `offset` on and waits for them.
//
// Errors: -EINVAL for what is no whole blocks of the target or lies outside, -EIO for what cannot be read.
int ocssd_target_read(struct ocssd_target *target, void *data, uint64_t bytes, uint64_t offset);

// Writes `bytes` bytes from `offset` on and waits until that is done; with `OCSSD_FUA` in `flags`, until it is durable.
//
// Errors: -EINVAL for what is no whole blocks or lies outside (of a target with zones, also what is not at a zone's end),
// -ENOSPC if bad chunks have used up the spare, -EIO if the media failed.
int ocssd_target_write(struct ocssd_target *target,
                       const void *data,
                       uint64_t bytes,
                       uint64_t offset,
                       uint32_t flags);

// Waits until everything that ended before is durable.
int ocssd_target_flush(struct ocssd_target *target);

// Gives a range back: it reads as zeroes. Of a target with blocks smaller than the drive's sectors only whole sectors are.
//
// Errors: -EOPNOTSUPP of a target that cannot (`linear`); else as `ocssd_target_write`.
int ocssd_target_discard(struct ocssd_target *target,
                         uint64_t bytes,
                         uint64_t offset);

// Makes a range read as zeroes.
//
// Errors: as `ocssd_target_discard`.
int ocssd_target_write_zeroes(struct ocssd_target *target, uint64_t bytes, uint64_t offset);

// Empties the zone that begins at `offset`, of a target with zones.
//
// Errors: -EOPNOTSUPP of a target without, -EINVAL if no zone begins there.
int ocssd_target_reset_zone(struct ocssd_target *target, uint64_t offset);

// Submits a request. `ended` is called with `context` by the poll that finds it ended; it may be NULL.
//
// Returns 0 if it was taken. Errors: -EAGAIN if as many requests as the target's `depth`, or 64 MiB of the drive's, were
// not told yet; -EINVAL for a request that cannot be; -EOPNOTSUPP for one that no target of this kind has.
int ocssd_target_submit(struct ocssd_target *target,
                        const struct ocssd_request *request,
                        ocssd_request_ended ended,
                        void *context);

// As `ocssd_target_submit`, for requests that bring more than their end: `ended` is told where an append landed, and how many
// zones match a report.
int ocssd_target_submit_for_reply(struct ocssd_target *target,
                                  const struct ocssd_request *request,
                                  ocssd_reply_ended ended,
                                  void *context);

// Tells ends of the target's requests, `budget` at most, by calling back. With the machine's clock it tells what is due and
// never waits. In virtual time, if nothing is due and a request is in progress, time jumps to the next end.
// Returns how many were told.
//
// Errors: -EBUSY within a callback of the same target.
int ocssd_target_poll(struct ocssd_target *target,
                      uint32_t budget);

// Gets how much of transactions a target takes.
//
// Errors: -EOPNOTSUPP of a target that has none.
int ocssd_transaction_info(struct ocssd_target *target, struct ocssd_transaction_limits *limits);

// Begins a transaction, and puts its name into `transaction`. Nobody sees what is written within it before its commit, its own
// program included, and a power cut or a close of the target leaves nothing of it.
//
// Errors: -EMFILE if as many are open as the target takes, or has room for; -EOPNOTSUPP of a target that has none.
int ocssd_transaction_begin(struct ocssd_target *target,
                            uint64_t *transaction);

// Writes `bytes` bytes from `offset` on within a transaction. A block that is written twice has its later content.
//
// Errors: as `ocssd_target_write`; -ENOENT if the transaction is not open; -ENOSPC if it would have more than `bytes_max`: it goes
// on without this then; -ECANCELED if the target gave it up because chunks went bad: begin it again.
int ocssd_transaction_write(struct ocssd_target *target,
                            uint64_t transaction,
                            const void *data,
                            uint64_t bytes,
                            uint64_t offset);

// Makes a transaction true, all of it at once, durable as a write of the target is. Of two that wrote a block the later commit
// decides. The transaction is over.
//
// Errors: -ENOENT if it is not open, -ECANCELED if the target gave it up, -EIO if the media failed.
int ocssd_transaction_commit(struct ocssd_target *target,
                             uint64_t transaction);

// Gives a transaction up: it is as if it had never been begun.
//
// Errors: -ENOENT if it is not open.
int ocssd_transaction_abort(struct ocssd_target *target, uint64_t transaction);

// Submits part of a transaction: `OCSSD_OP_WRITE`, `OCSSD_OP_COMMIT` or `OCSSD_OP_ABORT`. Otherwise as `ocssd_target_submit`.
// Parts take effect in the order in which they are submitted, so that a commit need not wait for the ends of its writes.
//
// Errors: as `ocssd_target_submit`; -ENOENT if the transaction is not open, -EOPNOTSUPP of a target that has none.
int ocssd_transaction_submit(struct ocssd_target *target,
                             uint64_t transaction,
                             const struct ocssd_request *request,
                             ocssd_request_ended ended,
                             void *context);

// Gets the zones of a target and its limits.
//
// Errors: -EOPNOTSUPP of a target that does not speak of zones.
int ocssd_zoned_info(struct ocssd_target *target, struct ocssd_zones *zones);

// Reports zones: puts the one that `offset` lies in and those behind it into `zones`, with room for `count`, of them only those in
// `state`, or all with 0. Puts into `matching`, which may be NULL, how many there are, with and without room.
//
// Errors: -EOPNOTSUPP of a target that does not speak of zones, -EINVAL for an offset behind the last one or no state.
int ocssd_zoned_report(struct ocssd_target *target,
                       uint64_t offset,
                       uint32_t state,
                       struct ocssd_zone *zones,
                       uint32_t count,
                       uint32_t *matching);

// Stores `bytes` bytes at the write pointer of the zone that begins at `offset`, and puts where that was into `landed`. Flags are
// `OCSSD_FUA` or 0.
//
// Errors: -ENOSPC of a full zone, -EROFS of one that is read only, -EINVAL for what does not fit into the zone or is longer than
// `append_bytes_max`, -EOVERFLOW if too many zones are active, -ETOOMANYREFS if too many are open.
int ocssd_zoned_append(struct ocssd_target *target,
                       const void *data,
                       uint64_t bytes,
                       uint64_t offset,
                       uint32_t flags,
                       uint64_t *landed);

// Changes the state of the zone that begins at `offset`: `op` is `OCSSD_OP_OPEN_ZONE`, `_CLOSE_ZONE`, `_FINISH_ZONE`,
// `_RESET_ZONE` or `_OFFLINE_ZONE`. Flags are 0, `OCSSD_ALL_ZONES` (offset 0), or of an opening `OCSSD_WITH_AREA`. The change is
// durable when this returns.
//
// Errors: -EINVAL for a state from which there is no way, or an offset at which no zone begins; -EOVERFLOW and -ETOOMANYREFS as
// `ocssd_zoned_append`; -EBUSY if no zone can have an area now, or its write pointer is not at a multiple of the granularity.
int ocssd_zoned_manage(struct ocssd_target *target,
                       uint32_t op,
                       uint64_t offset,
                       uint32_t flags);

// Commits the random write area of a zone up to the block at `offset`, with it: the last one of a multiple of the granularity, or
// of the zone. Durable when this returns.
//
// Errors: -EINVAL if there is no area, or the block is none of it or no such end.
int ocssd_zoned_commit_area(struct ocssd_target *target,
                            uint64_t offset);

// Gives the empty zone that begins at `offset` an extension of `bytes` bytes, which must be
// `OCSSD_EXTENSION_BYTES`. It is closed from then on, and
// keeps the extension until it is reset. Durable when this returns.
//
// Errors: -EINVAL for a zone in another state, -EOVERFLOW if too many zones are active.
int ocssd_zoned_set_extension(struct ocssd_target *target,
                              uint64_t offset,
                              const void *extension,
                              uint64_t bytes);

// Asks for a zone that changed by itself since this was asked last: it became read only or offline, because the media failed, or
// was finished for another. Returns 1 and puts its begin into `offset`, or returns 0. Each zone is told once until it changes
// again.
//
// Errors: -EOPNOTSUPP of a target that does not speak of zones.
int ocssd_zoned_changed(struct ocssd_target *target,
                        uint64_t *offset);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* OCSSD_H */

OCSSD_STATIC_ASSERT(sizeof(ocssd_completion) == 16, "a completion entry has 16 bytes");
OCSSD_STATIC_ASSERT(sizeof(ocssd_chunk) == 32, "a chunk descriptor has 32 bytes");
OCSSD_STATIC_ASSERT(sizeof(ocssd_zone) == 96, "a zone has 96 bytes");
