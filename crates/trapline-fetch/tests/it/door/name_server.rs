//! A name server on loopback that says whatever a test wants, over UDP and TCP.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, SOA};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;
use trapline_fetch::DialOptions;

/// What the server makes of a question.
pub(crate) enum Reply {
    /// These records, of which those of the asked kind and aliases are sent.
    Records(Vec<Record>),
    /// A failure or "no such name".
    Code(ResponseCode),
    /// "No such name", and for how many seconds that holds.
    NoSuchName(u32),
    /// Nothing at all.
    Silence,
    /// Bytes that are no answer, with the question's id before them.
    Garbage(Vec<u8>),
}

pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    questions: Arc<Mutex<Vec<(String, RecordType)>>>,
    tasks: [JoinHandle<()>; 2],
}

impl NameServer {
    /// Answers with what `reply` makes of a name, a kind, and how often both were asked for before.
    pub(crate) async fn start(
        reply: impl Fn(&str, RecordType, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        // Both protocols need the same port, and another process may hold one of the two.
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
                break (udp, tcp);
            }
        };
        let address = udp.local_addr().unwrap();
        let questions = Arc::new(Mutex::new(Vec::new()));
        let answer = {
            let questions = Arc::clone(&questions);
            Arc::new(move |bytes: &[u8], over_tcp: bool| answer(bytes, over_tcp, &questions, &reply))
        };
        let over_udp = tokio::spawn({
            let answer = Arc::clone(&answer);
            async move {
                let mut buffer = [0; 4096];
                while let Ok((length, asker)) = udp.recv_from(&mut buffer).await {
                    if let Some(bytes) = answer(&buffer[..length], false) {
                        let _ = udp.send_to(&bytes, asker).await;
                    }
                }
            }
        });
        let over_tcp = tokio::spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                let answer = Arc::clone(&answer);
                tokio::spawn(async move {
                    while let Ok(length) = stream.read_u16().await {
                        let mut buffer = vec![0; usize::from(length)];
                        if stream.read_exact(&mut buffer).await.is_err() {
                            return;
                        }
                        if let Some(bytes) = answer(&buffer, true) {
                            let length = u16::try_from(bytes.len()).unwrap();
                            let _ = stream.write_u16(length).await;
                            let _ = stream.write_all(&bytes).await;
                        }
                    }
                });
            }
        });
        Self { address, questions, tasks: [over_udp, over_tcp] }
    }

    /// All names lead to the same addresses, which hold for a minute.
    pub(crate) async fn everything_is(addresses: &[&str]) -> Self {
        let addresses: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
        Self::start(move |name, _, _| {
            Reply::Records(addresses.iter().map(|address| leads_to(name, 60, address)).collect())
        })
        .await
    }

    /// Options with this name server instead of the system's.
    pub(crate) fn asked_by(&self, mut options: DialOptions) -> DialOptions {
        options.dns.name_servers = vec![self.address];
        options
    }

    /// All questions so far, such as `a.example. A`.
    pub(crate) fn questions(&self) -> Vec<String> {
        self.questions.lock().unwrap().iter().map(|(name, kind)| format!("{name} {kind}")).collect()
    }

    /// How often addresses of IPv4 were asked for.
    pub(crate) fn asked(&self) -> usize {
        self.questions.lock().unwrap().iter().filter(|(_, kind)| *kind == RecordType::A).count()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

pub(crate) fn leads_to(name: &str, ttl: u32, address: &str) -> Record {
    let data = match address.parse().unwrap() {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    };
    Record::from_rdata(Name::from_ascii(name).unwrap(), ttl, data)
}

pub(crate) fn alias(name: &str, ttl: u32, target: &str) -> Record {
    Record::from_rdata(
        Name::from_ascii(name).unwrap(),
        ttl,
        RData::CNAME(CNAME(Name::from_ascii(target).unwrap())),
    )
}

fn answer(
    bytes: &[u8],
    over_tcp: bool,
    questions: &Mutex<Vec<(String, RecordType)>>,
    reply: &impl Fn(&str, RecordType, usize) -> Reply,
) -> Option<Vec<u8>> {
    let request = Message::from_vec(bytes).ok()?;
    let query = request.queries.first()?.clone();
    let name = query.name().to_ascii().to_lowercase();
    let kind = query.query_type();
    let before = {
        let mut questions = questions.lock().unwrap();
        let before = questions.iter().filter(|asked| **asked == (name.clone(), kind)).count();
        questions.push((name.clone(), kind));
        before
    };
    let mut message = Message::response(request.id, OpCode::Query);
    message.add_query(query.clone());
    message.metadata.recursion_available = true;
    match reply(&name, kind, before) {
        Reply::Records(records) => {
            let fitting = |record: &Record| [kind, RecordType::CNAME].contains(&record.record_type());
            message.add_answers(records.into_iter().filter(fitting));
        }
        Reply::Code(code) => message.metadata.response_code = code,
        Reply::NoSuchName(ttl) => {
            message.metadata.response_code = ResponseCode::NXDomain;
            let root = Name::root();
            let soa = SOA::new(root.clone(), root.clone(), 1, 1, 1, 1, ttl);
            message.add_authority(Record::from_rdata(root, ttl, RData::SOA(soa)));
        }
        Reply::Silence => return None,
        Reply::Garbage(rest) => {
            let mut bytes = request.id.to_be_bytes().to_vec();
            bytes.extend_from_slice(&rest);
            return Some(bytes);
        }
    }
    let bytes = message.to_vec().unwrap();
    if !over_tcp && bytes.len() > 1232 {
        message.answers.clear();
        message.metadata.truncation = true;
        return Some(message.to_vec().unwrap());
    }
    Some(bytes)
}
