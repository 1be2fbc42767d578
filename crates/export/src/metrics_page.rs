//! A page for Prometheus over HTTP: one request a connection, one answer, and the end.
//!
//! The page is text that somebody else keeps up to date; a connection gives out what it is then. Requests are read as RFC 9112
//! has them as far as a scraper makes any: the request line counts, fields are passed over, bodies are not taken. Deliberately
//! not here: what stands on the page.

use crate::dispatcher::Dispatcher;
use crate::job::Done;
use crate::protocol::{Phase, Protocol, ProtocolError, Space};
use crate::send_queue::SendQueue;
use std::cell::RefCell;
use std::rc::Rc;

/// The page, shared by who writes it and all connections; in the text exposition format of Prometheus, version 0.0.4.
pub type Page = Rc<RefCell<String>>;

/// Longest head of a request (chosen: what common servers take).
const HEAD_BYTES_MAX: usize = 8 << 10;

/// What ends the head of a request (RFC 9112 section 2.1).
const HEAD_END: &[u8] = b"\r\n\r\n";

/// One scraper.
pub struct MetricsPage {
    page: Page,
    head: Vec<u8>,
    send_queue: SendQueue,
    is_answered: bool,
}

impl MetricsPage {
    /// A connection that gives out this page.
    #[must_use]
    pub fn new(page: Page) -> Self {
        Self { page, head: Vec::new(), send_queue: SendQueue::default(), is_answered: false }
    }

    fn answer(&mut self) {
        let line = self.head.split(|&byte| byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = path.split('?').next().unwrap_or_default();
        let (status, body) = match (method, path) {
            ("GET" | "HEAD", "/metrics") => ("200 OK", self.page.borrow().clone()),
            ("GET" | "HEAD", _) => ("404 Not Found", "The page is /metrics.\n".to_owned()),
            _ => ("405 Method Not Allowed", "The page is read with GET.\n".to_owned()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        self.send_queue.push_text(head.as_bytes());
        if method != "HEAD" {
            self.send_queue.push_text(body.as_bytes());
        }
        self.is_answered = true;
    }
}

impl Protocol for MetricsPage {
    fn on_bytes(&mut self, bytes: &[u8], _: &mut Dispatcher) -> Result<usize, ProtocolError> {
        assert!(!self.is_answered, "nothing is read after the answer");
        self.head.extend_from_slice(bytes);
        if self.head.windows(HEAD_END.len()).any(|end| end == HEAD_END) {
            self.answer();
        } else if self.head.len() >= HEAD_BYTES_MAX {
            return Err(ProtocolError::oversized(format!(
                "expected an HTTP request of at most {HEAD_BYTES_MAX} bytes, found one without an end"
            )));
        }
        Ok(bytes.len())
    }

    fn payload_space(&self) -> Option<Space> {
        None
    }

    fn on_payload(&mut self, _: usize, _: &mut Dispatcher) {
        unreachable!("a scraper sends no payload");
    }

    fn text_wanted(&self) -> usize {
        if self.is_answered { 0 } else { HEAD_BYTES_MAX - self.head.len() }
    }

    fn on_done(&mut self, _: Done, _: &mut Dispatcher) {
        unreachable!("a scraper asks for no job");
    }

    fn go_on(&mut self, _: &mut Dispatcher) -> bool {
        false
    }

    fn send_queue(&mut self) -> &mut SendQueue {
        &mut self.send_queue
    }

    fn phase(&self) -> Phase {
        if self.is_answered { Phase::Leaving } else { Phase::Greeting }
    }

    fn on_tls(&mut self) {
        unreachable!("the page is not encrypted");
    }

    fn on_stop(&mut self) {}

    fn is_idle(&self) -> bool {
        self.head.is_empty() || self.is_answered
    }

    fn release(&mut self, dispatcher: &mut Dispatcher) {
        self.send_queue.clear(&mut dispatcher.pool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_disk::MemoryDisks;

    /// What a scraper is sent that sends this, in pieces of so many bytes.
    fn scrape(request: &[u8], piece: usize) -> Result<String, ProtocolError> {
        let (mut dispatcher, _) = MemoryDisks::new(&[("", 8)], [1, 1, 1]);
        let page = Page::new(RefCell::new("ocssd_x 1\n".to_owned()));
        let mut session = MetricsPage::new(page);
        for bytes in request.chunks(piece) {
            if session.text_wanted() == 0 {
                break;
            }
            assert_eq!(session.on_bytes(bytes, &mut dispatcher)?, bytes.len());
        }
        let mut slices = [std::io::IoSlice::new(&[]); 8];
        let count = session.send_queue().slices(&dispatcher.buffers, &mut slices);
        let text: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
        Ok(String::from_utf8(text).expect("the answer is text"))
    }

    #[test]
    fn the_page_is_given_once_however_the_request_is_cut() {
        let request = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        for piece in 1..=request.len() {
            let answer = scrape(request, piece).unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nocssd_x 1\n"),
                "{answer}"
            );
            assert!(answer.contains("Content-Length: 10\r\n"), "{answer}");
        }
        assert!(scrape(b"HEAD /metrics HTTP/1.1\r\n\r\n", 9).unwrap().ends_with("\r\n\r\n"));
    }

    #[test]
    fn what_is_no_request_for_the_page_is_answered_or_ended() {
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "HTTP/1.1 404 "),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
            (b"\xff\xfe\r\n\r\n", "HTTP/1.1 405 "),
            (b"\r\n\r\n", "HTTP/1.1 405 "),
        ] {
            assert!(scrape(request, 5).unwrap().starts_with(status), "{request:?}");
        }
        assert_eq!(scrape(b"GET /metr", 3).unwrap(), "", "half a request has no answer");
        let endless = scrape(&vec![b'a'; HEAD_BYTES_MAX + 1], 100).unwrap_err();
        assert!(endless.sentence.contains("8192"), "{endless}");
    }
}
