//! Commands that a connection answers by itself.

use super::super::command::{NO_INTEGER, Own, SYNTAX};
use super::super::number;
use super::super::reply::{Reply, Version};
use super::super::request::Request;
use super::{Session, server};

impl Session {
    /// Carries one out.
    pub(super) fn run_own(&mut self, own: Own, request: &Request) {
        let mut reply = Reply::new(self.version);
        match own {
            Own::Client => self.client(request, &mut reply),
            Own::Command => server::command(request, &mut reply),
            Own::Config => server::config(request, &self.database.borrow(), &mut reply),
            Own::Discard => self.discard(&mut reply),
            Own::Exec => unreachable!("it is an order"),
            Own::Function if request.is(1, "flush") => reply.ok(),
            Own::Function if request.is(1, "list") => reply.array(0),
            Own::Function => reply.error(&server::unknown_subcommand(request)),
            Own::Hello => {
                if let Err(words) = self.hello(request, &mut reply) {
                    reply.error(&words);
                }
            }
            Own::Info => server::info(&mut self.database.borrow_mut(), &mut reply),
            Own::Multi => self.multi(&mut reply),
            Own::Quit => {
                reply.ok();
                self.leaves = true;
            }
            Own::Reset => {
                self.transaction = None;
                self.version = Version::Two;
                let mut database = self.database.borrow_mut();
                database.unwatch(self.id);
                database.clients().set_title(self.id, b"");
                reply.simple("RESET");
            }
            Own::Select => match number::integer(request.word(1)) {
                Some(0) => reply.ok(),
                Some(_) => reply.error("ERR DB index is out of range"),
                None => reply.error(NO_INTEGER),
            },
            Own::Time => {
                let now_ms = self.database.borrow().time_ms().0;
                reply.array(2);
                reply.bulk((now_ms / 1000).to_string().as_bytes());
                reply.bulk((now_ms % 1000 * 1000).to_string().as_bytes());
            }
            Own::Unwatch => {
                self.database.borrow_mut().unwatch(self.id);
                reply.ok();
            }
        }
        self.answer(reply);
    }

    /// HELLO.
    fn hello(&mut self, request: &Request, reply: &mut Reply) -> Result<(), String> {
        let mut version = self.version;
        let mut title = None;
        if request.len() > 1 {
            version = match number::integer(request.word(1)) {
                Some(2) => Version::Two,
                Some(3) => Version::Three,
                Some(_) => return Err("NOPROTO unsupported protocol version".to_owned()),
                None => return Err("ERR Protocol version is not an integer or out of range".to_owned()),
            };
        }
        let mut at = 2;
        while at < request.len() {
            if request.is(at, "auth") && at + 2 < request.len() {
                return Err("WRONGPASS invalid username-password pair or user is disabled.".to_owned());
            } else if request.is(at, "setname") && at + 1 < request.len() {
                title = Some(checked_title(request.word(at + 1))?);
                at += 2;
            } else {
                let option = String::from_utf8_lossy(request.word(at)).into_owned();
                return Err(format!("ERR Syntax error in HELLO option '{option}'"));
            }
        }
        self.version = version;
        let mut database = self.database.borrow_mut();
        if let Some(title) = title {
            database.clients().set_title(self.id, title);
        }
        *reply = Reply::new(version);
        server::hello(self.id, version, reply);
        Ok(())
    }

    /// CLIENT.
    fn client(&mut self, request: &Request, reply: &mut Reply) {
        let mut database = self.database.borrow_mut();
        let now_ms = database.time_ms().0;
        let is = |name: &str, words: usize| request.is(1, name) && request.len() == words;
        match () {
            () if is("id", 2) => reply.integer(i64::try_from(self.id).expect("a count")),
            () if is("getname", 2) => {
                let title = database.clients().title(self.id);
                reply.bulk_or_null(Some(title).filter(|title| !title.is_empty()));
            }
            () if is("setname", 3) => match checked_title(request.word(2)) {
                Ok(title) => {
                    database.clients().set_title(self.id, title);
                    reply.ok();
                }
                Err(words) => reply.error(&words),
            },
            () if is("setinfo", 4) || is("no-evict", 3) || is("no-touch", 3) => reply.ok(),
            () if is("reply", 3) && request.is(2, "on") => reply.ok(),
            () if is("reply", 3) => reply.error(SYNTAX),
            () if is("info", 2) => reply.text(&database.clients().list(Some(self.id), now_ms)),
            () if is("list", 2) => reply.text(&database.clients().list(None, now_ms)),
            () => reply.error(&server::unknown_subcommand(request)),
        }
    }
}

/// A title that does not break lists.
fn checked_title(title: &[u8]) -> Result<&[u8], String> {
    let is_plain = title.iter().all(|byte| (b'!'..=b'~').contains(byte));
    is_plain
        .then_some(title)
        .ok_or_else(|| "ERR Client names cannot contain spaces, newlines or special characters.".to_owned())
}
