//! What clients ask about the server: HELLO, COMMAND, CONFIG, INFO.

use super::super::command::{Access, Command};
use super::super::database::Database;
use super::super::glob;
use super::super::reply::{Reply, Version};
use super::super::request::Request;
use super::super::table::{self, COMMANDS};

/// The version of Redis whose commands are meant; clients decide by it what they may ask.
const REDIS_VERSION: &str = "7.0.15";

/// The answer to HELLO.
pub(super) fn hello(id: u64, version: Version, reply: &mut Reply) {
    reply.map(7);
    for (name, value) in
        [("server", "ocssd"), ("version", REDIS_VERSION), ("mode", "standalone"), ("role", "master")]
    {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if version == Version::Two { 2 } else { 3 });
    reply.bulk(b"id");
    reply.integer(i64::try_from(id).expect("a count"));
    reply.bulk(b"modules");
    reply.array(0);
}

/// What a subcommand is told that there is not.
pub(super) fn unknown_subcommand(request: &Request) -> String {
    let shown = |place: usize| String::from_utf8_lossy(request.word(place)).into_owned();
    format!("ERR unknown subcommand '{}'. Try {} HELP.", shown(1), shown(0).to_ascii_uppercase())
}

fn describe(command: &Command, reply: &mut Reply) {
    reply.array(6);
    reply.bulk(command.name.as_bytes());
    reply.integer(command.arity.into());
    reply.set(1);
    reply.simple(match command.access {
        Access::Writes => "write",
        Access::Reads => "readonly",
        Access::None => "fast",
    });
    reply.length(command.keys.first);
    reply.integer(command.keys.last.into());
    reply.length(command.keys.step);
}

fn document(command: &Command, reply: &mut Reply) {
    reply.bulk(command.name.as_bytes());
    reply.map(2);
    reply.bulk(b"summary");
    reply.bulk(command.summary.as_bytes());
    reply.bulk(b"group");
    reply.bulk(command.group.name().as_bytes());
}

/// COMMAND.
pub(super) fn command(request: &Request, reply: &mut Reply) {
    if request.len() == 1 {
        reply.array(COMMANDS.len());
        COMMANDS.iter().for_each(|command| describe(command, reply));
    } else if request.is(1, "count") {
        reply.length(COMMANDS.len());
    } else if request.is(1, "list") {
        reply.array(COMMANDS.len());
        COMMANDS.iter().for_each(|command| reply.bulk(command.name.as_bytes()));
    } else if request.is(1, "info") {
        reply.array(request.len() - 2);
        for name in request.words_from(2) {
            match table::find(name) {
                Some(command) => describe(command, reply),
                None => reply.null_array(),
            }
        }
    } else if request.is(1, "docs") {
        let asked: Vec<&Command> = match request.len() {
            2 => COMMANDS.iter().collect(),
            _ => request.words_from(2).filter_map(table::find).collect(),
        };
        reply.map(asked.len());
        asked.iter().for_each(|command| document(command, reply));
    } else if request.is(1, "getkeys") && request.len() > 2 {
        get_keys(request, reply);
    } else {
        reply.error(&unknown_subcommand(request));
    }
}

/// COMMAND GETKEYS: the words behind it are a command.
fn get_keys(request: &Request, reply: &mut Reply) {
    let Some(command) = table::find(request.word(2)).filter(|command| command.takes(request.len() - 2))
    else {
        return reply.error("ERR Invalid command specified, or the number of arguments is wrong");
    };
    let (first, count) = (command.keys.first, request.len() - 2);
    if first == 0 {
        return reply.error("ERR The command has no key arguments");
    }
    let end = usize::try_from(command.keys.last).map_or(count, |last| last + 1);
    let places: Vec<usize> = (first..end).step_by(command.keys.step).collect();
    reply.array(places.len());
    places.iter().for_each(|place| reply.bulk(request.word(place + 2)));
}

/// Settings as clients know them.
fn settings(database: &Database) -> [(&'static str, String); 9] {
    let settings = database.settings();
    let sync = if settings.is_durable_at_reply { "always" } else { "everysec" };
    [
        ("appendfsync", sync.to_owned()),
        ("appendonly", "yes".to_owned()),
        ("databases", "1".to_owned()),
        ("maxmemory", settings.memory_bytes.to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("proto-max-bulk-len", settings.value_bytes_max().to_string()),
        ("replica-read-only", if settings.is_read_only { "yes" } else { "no" }.to_owned()),
        ("save", String::new()),
        ("timeout", "0".to_owned()),
    ]
}

/// CONFIG.
pub(super) fn config(request: &Request, database: &Database, reply: &mut Reply) {
    if request.is(1, "resetstat") {
        reply.ok();
    } else if request.is(1, "set") && request.len() > 3 {
        let name = String::from_utf8_lossy(request.word(2)).into_owned();
        reply.error(&format!(
            "ERR CONFIG SET failed (possibly related to argument '{name}') - can't set immutable config"
        ));
    } else if request.is(1, "get") && request.len() > 2 {
        let is_asked = |name: &str| {
            request.words_from(2).any(|word| glob::matches(&word.to_ascii_lowercase(), name.as_bytes()))
        };
        let found: Vec<_> = settings(database).into_iter().filter(|(name, _)| is_asked(name)).collect();
        reply.map(found.len());
        for (name, value) in found {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
    } else {
        reply.error(&unknown_subcommand(request));
    }
}

/// INFO.
pub(super) fn info(database: &mut Database, reply: &mut Reply) {
    let (counts, (_, up_ms)) = (*database.counts(), database.time_ms());
    let (used, limit) = (database.budget().used(), database.budget().limit());
    let clients = database.clients().len();
    reply.text(&format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\nserver_name:ocssd\r\nredis_mode:standalone\r\n\
         uptime_in_seconds:{}\r\n\r\n# Clients\r\nconnected_clients:{clients}\r\n\r\n# Memory\r\nused_memory:{used}\r\n\
         maxmemory:{limit}\r\nmem_allocator:ocssd\r\n\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\n\r\n\
         # Stats\r\ntotal_commands_processed:{}\r\nexpired_keys:{}\r\naborted_transactions:{}\r\n\r\n\
         # Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
        up_ms / 1000,
        counts.commands,
        counts.expired,
        counts.aborted,
    ));
}
