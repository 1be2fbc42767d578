//! A bank in SQLite on a drive: what must hold of it after a power cut, whatever SQLite and the drive did.
//!
//! Transfers move money between accounts and write a row of a history, in one transaction: the sum of all accounts stays, and the
//! history says how many transfers are there. The rows carry content, so that the file grows.

use ocssd_base::Prng;
use ocssd_sqlite::{DriveVolume, Nanos, Planted};
use rusqlite::{Connection, OpenFlags};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Accounts, and what each has in the beginning.
const ACCOUNTS: i64 = 400;
const BALANCE: i64 = 1_000;

/// What a bank is kept with.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Options of the volume.
    pub options: &'static str,
    /// SQLite's journal mode.
    pub journal_mode: &'static str,
    /// A bug that is put in.
    pub planted: Planted,
    /// Cuts during the recovery after a cut, at most.
    pub recoveries_cut: u32,
    /// Content of a row of the history.
    pub transfer_bytes: i64,
}

/// A volume with an open bank.
pub struct Bank {
    pub volume: Arc<DriveVolume>,
    pub connection: Connection,
    vfs: String,
    way: Way,
}

/// Within which time a recovery is cut (chosen: some of the tests' recoveries are longer and some shorter, which a test counts).
const RECOVERY: Nanos = Nanos::from_millis(20);
/// Recoveries that were cut so far.
pub static RECOVERIES_CUT: AtomicU32 = AtomicU32::new(0);
/// Which VFS was registered last; each volume has one of its own.
static VOLUMES: AtomicU32 = AtomicU32::new(0);

/// Keeps other tests away: SQLite as it is compiled here shares one page cache among all connections of a process
/// (`SQLITE_ENABLE_MEMORY_MANAGEMENT`), so that what one test reads decides what another finds in memory, and how long it takes.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A connection for which an answered commit is durable in every journal mode (`synchronous=EXTRA`: with `FULL` the deletion of a
/// rollback journal is not, and brings the state before the last commit back).
pub fn connect(vfs: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags_and_vfs("bank.db", flags, vfs)?;
    connection.execute_batch("PRAGMA synchronous=EXTRA")?;
    Ok(connection)
}

/// Registers a volume under a name of its own.
pub fn register(volume: &Arc<DriveVolume>) -> String {
    let vfs = format!("ocssd-{}", VOLUMES.fetch_add(1, Ordering::Relaxed));
    ocssd_sqlite::register(&vfs, volume).unwrap();
    vfs
}

impl Bank {
    /// A fresh bank.
    pub fn open(way: Way) -> Self {
        let volume = Arc::new(DriveVolume::open_planted(way.options, way.planted).unwrap());
        let vfs = register(&volume);
        let connection = connect(&vfs).unwrap();
        let mode =
            connection.query_row(&format!("PRAGMA journal_mode={}", way.journal_mode), [], |row| row.get(0));
        assert_eq!(mode, Ok(way.journal_mode.to_owned()));
        let tables = "BEGIN;
            CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, note BLOB NOT NULL);
            CREATE TABLE history(nth INTEGER PRIMARY KEY, source INTEGER, target INTEGER, note BLOB NOT NULL);
            CREATE INDEX by_source ON history(source, target)";
        connection.execute_batch(tables).unwrap();
        let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
            INSERT INTO account SELECT i, ?2, zeroblob(300) FROM n";
        connection.execute(fill, [ACCOUNTS, BALANCE]).unwrap();
        connection.execute_batch("COMMIT").unwrap();
        Self { volume, connection, vfs, way }
    }

    /// Transfer number `nth`: several accounts, so that several pages change.
    pub fn transfer(&self, nth: i64, prng: &mut Prng) -> rusqlite::Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut account = || i64::try_from(prng.below(ACCOUNTS.unsigned_abs())).unwrap() + 1;
        for _ in 0..4 {
            let (source, target) = (account(), account());
            self.connection.execute("UPDATE account SET balance = balance - 1 WHERE id = ?1", [source])?;
            self.connection.execute("UPDATE account SET balance = balance + 1 WHERE id = ?1", [target])?;
        }
        let (source, target) = (account(), account());
        let row = "INSERT INTO history VALUES(?1, ?2, ?3, zeroblob(?4))";
        self.connection.execute(row, [nth, source, target, self.way.transfer_bytes])?;
        self.connection.execute_batch("COMMIT")
    }

    /// The drive's time.
    pub fn now(&self) -> Nanos {
        self.volume.counts().unwrap().now
    }

    /// Transfers until `count` are done or one fails. Returns how many were answered.
    pub fn run(&self, count: i64, seed: u64) -> i64 {
        let mut prng = Prng::new(seed);
        (0..count).take_while(|&nth| self.transfer(nth, &mut prng).is_ok()).count().try_into().unwrap()
    }

    /// The power is there again after a cut: what is wrong with the bank, of which `answered` transfers must be there.
    pub fn after_power_cut(self, answered: i64) -> Result<(), String> {
        let Self { volume, connection, vfs, way } = self;
        drop(connection);
        // Cuts during recovery, as long as they come: each later than the one before.
        let mut prng = Prng::new(answered.unsigned_abs());
        let mut recoveries_cut = 0;
        while recoveries_cut < way.recoveries_cut {
            let at = volume.now().unwrap() + Nanos(1 + prng.below(RECOVERY.0));
            volume.cut_power_at(at, prng.below(1 << 32)).unwrap();
            match volume.restart() {
                Ok(()) => break,
                Err(error) if !volume.is_off().unwrap() => return Err(format!("no restart: {error}")),
                Err(_) => recoveries_cut += 1,
            }
        }
        RECOVERIES_CUT.fetch_add(recoveries_cut, Ordering::Relaxed);
        volume.cut_power_at(Nanos::MAX, 0).unwrap();
        if volume.is_off().unwrap() {
            volume.restart().map_err(|error| format!("no restart: {error}"))?;
        }
        let connection = connect(&vfs).map_err(|error| format!("cannot be opened: {error}"))?;
        judge(&connection, answered)
    }
}

/// What is wrong with a bank of which `answered` transfers must be there; one more may be.
pub fn judge(connection: &Connection, answered: i64) -> Result<(), String> {
    let ask = |sql: &str| {
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|error| format!("{sql}: {error}"))
    };
    let integrity: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .map_err(|error| format!("integrity_check: {error}"))?;
    if integrity != "ok" {
        return Err(format!("integrity_check: {integrity}"));
    }
    let sum = ask("SELECT sum(balance) FROM account")?;
    if sum != ACCOUNTS * BALANCE {
        return Err(format!("{sum} of {} are there: half a transfer", ACCOUNTS * BALANCE));
    }
    let found = ask("SELECT count(*) FROM history")?;
    let last = ask("SELECT coalesce(max(nth) + 1, 0) FROM history")?;
    if found != last || !(answered..=answered + 1).contains(&found) {
        return Err(format!(
            "{answered} transfers were answered, and {found} are there, the last of them number {last}"
        ));
    }
    Ok(())
}

/// Cuts the power of `cuts` banks, each at a time of its own during `transfers` transfers. Returns what was wrong after each.
pub fn cut(way: Way, cuts: u64, transfers: i64, seed: u64) -> Vec<String> {
    let _alone = alone();
    println!("{way:?}: {cuts} cuts, seed {seed}");
    let whole = Bank::open(way);
    let begin = whole.now();
    assert_eq!(whole.run(transfers, seed), transfers);
    let lasts = whole.now().saturating_since(begin).0;
    let mut prng = Prng::new(seed ^ 0x5eed);
    let mut wrong = Vec::new();
    for nth in 0..cuts {
        let bank = Bank::open(way);
        assert_eq!(bank.now(), begin, "the same bank takes the same time");
        // Spread evenly, each drawn within its own part.
        let at = begin + Nanos((lasts * nth + prng.below(lasts)) / cuts);
        bank.volume.cut_power_at(at, seed + nth).unwrap();
        let answered = bank.run(transfers, seed);
        assert!(
            bank.volume.is_off().unwrap(),
            "cut {nth} at {at} never came: {answered} of {transfers} transfers were answered by {}, and without cuts by {}",
            bank.now(),
            begin + Nanos(lasts)
        );
        let found = bank.after_power_cut(answered);
        wrong
            .extend(found.err().map(|what| format!("cut {nth} at {at}, after {answered} transfers: {what}")));
    }
    wrong
}
