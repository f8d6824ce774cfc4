//! Two people's clients on matrix-rust-sdk. Reads a request in JSON from each line of standard input, and writes one
//! line with what came of it. What is expected of the clients is written down where the lines come from.

#![recursion_limit = "256"]

mod newcomer;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, pin_mut};
use matrix_sdk::{
    Client, Room,
    config::RequestConfig,
    room::edit::EditedContent,
    ruma::{
        OwnedEventId, OwnedRoomId, OwnedUserId,
        api::client::receipt::create_receipt::v3::ReceiptType,
        events::room::message::{RoomMessageEventContent, RoomMessageEventContentWithoutRelation},
    },
    sliding_sync::VersionBuilder,
};
use matrix_sdk_ui::{
    Timeline,
    eyeball_im::Vector,
    room_list_service::{RoomListItem, RoomListLoadingState, filters::new_filter_non_left},
    sync_service::SyncService,
    timeline::{EventTimelineItem, RoomExt, TimelineEventItemId},
};
use newcomer::Newcomer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

type Shared<T> = Arc<Mutex<T>>;

/// A room that is open on the screen.
struct OpenRoom {
    timeline: Timeline,
    typing: Shared<Vec<OwnedUserId>>,
}

struct Person {
    client: Client,
    sync: SyncService,
    /// The list as it is shown, with the newest room first.
    list: Shared<Vector<RoomListItem>>,
    /// How many rooms the server says there are.
    count: Shared<Option<u32>>,
    open: BTreeMap<OwnedRoomId, OpenRoom>,
}

impl Person {
    async fn enter(request: &Value) -> Result<Self> {
        let client = Client::builder()
            .homeserver_url(text(request, "url")?)
            .sliding_sync_version_builder(VersionBuilder::DiscoverNative)
            .request_config(RequestConfig::new().retry_limit(3))
            .build()
            .await?;
        client
            .matrix_auth()
            .login_username(text(request, "who")?, text(request, "password")?)
            .device_id(text(request, "device")?)
            .send()
            .await?;
        client.encryption().wait_for_e2ee_initialization_tasks().await;
        let sync = SyncService::builder(client.clone()).with_offline_mode().build().await?;
        let list = Shared::default();
        let count = Shared::default();
        let rooms = sync.room_list_service().all_rooms().await?;
        let mut loading = rooms.loading_state();
        tokio::spawn({
            let count = Arc::clone(&count);
            async move {
                loop {
                    let state = loading.next_now();
                    if let RoomListLoadingState::Loaded { maximum_number_of_rooms } = state {
                        *count.lock().unwrap() = maximum_number_of_rooms;
                    }
                    if loading.next().await.is_none() {
                        break;
                    }
                }
            }
        });
        tokio::spawn({
            let list = Arc::clone(&list);
            async move {
                let (stream, controller) = rooms.entries_with_dynamic_adapters(1_000);
                controller.set_filter(Box::new(new_filter_non_left()));
                pin_mut!(stream);
                while let Some(changes) = stream.next().await {
                    let mut shown = list.lock().unwrap();
                    for change in changes {
                        change.apply(&mut shown);
                    }
                }
            }
        });
        sync.start().await;
        Ok(Self { client, sync, list, count, open: BTreeMap::new() })
    }

    fn room(&self, request: &Value) -> Result<Room> {
        let id = OwnedRoomId::try_from(text(request, "room")?)?;
        self.client.get_room(&id).with_context(|| format!("{id} is not known to the client"))
    }

    fn opened(&self, request: &Value) -> Result<&OpenRoom> {
        let id = OwnedRoomId::try_from(text(request, "room")?)?;
        self.open.get(&id).with_context(|| format!("{id} is not open"))
    }

    fn shown_rooms(&self) -> Value {
        let list = self.list.lock().unwrap();
        let rooms: Vec<Value> = list.iter().map(|item| shown_room(item)).collect();
        json!({ "rooms": rooms, "count": *self.count.lock().unwrap(), "state": format!("{:?}", self.sync.state().get()) })
    }

    async fn open(&mut self, request: &Value) -> Result<Value> {
        let room = self.room(request)?;
        self.sync.room_list_service().subscribe_to_rooms(&[room.room_id()]).await;
        let timeline = room.timeline().await?;
        let typing = Shared::default();
        let (guard, mut notices) = room.subscribe_to_typing_notifications();
        tokio::spawn({
            let typing = Arc::clone(&typing);
            async move {
                let _guard = guard;
                while let Ok(users) = notices.recv().await {
                    *typing.lock().unwrap() = users;
                }
            }
        });
        self.open.insert(room.room_id().to_owned(), OpenRoom { timeline, typing });
        Ok(Value::Null)
    }

    async fn act(&mut self, request: &Value) -> Result<Value> {
        match text(request, "do")? {
            "list" => Ok(self.shown_rooms()),
            "open" => self.open(request).await,
            "join" => done(self.room(request)?.join().await?),
            "leave" => done(self.room(request)?.leave().await?),
            "look" => {
                let OpenRoom { timeline, typing } = self.opened(request)?;
                let items = timeline.items().await;
                let shown: Vec<Value> = items.iter().filter_map(|item| item.as_event()).map(shown_item).collect();
                Ok(json!({ "items": shown, "typing": *typing.lock().unwrap() }))
            }
            "back" => Ok(json!(self.opened(request)?.timeline.paginate_backwards(20).await?)),
            "send" => {
                let content = RoomMessageEventContent::text_plain(text(request, "text")?);
                self.opened(request)?.timeline.send(content.into()).await?;
                Ok(Value::Null)
            }
            "edit" => {
                let content = RoomMessageEventContentWithoutRelation::text_plain(text(request, "text")?);
                done(self.opened(request)?.timeline.edit(&item(request)?, EditedContent::RoomMessage(content)).await?)
            }
            "react" => {
                let timeline = &self.opened(request)?.timeline;
                Ok(json!(timeline.toggle_reaction(&item(request)?, text(request, "key")?).await?))
            }
            "redact" => done(self.opened(request)?.timeline.redact(&item(request)?, None).await?),
            "read" => {
                let event = OwnedEventId::try_from(text(request, "event")?)?;
                Ok(json!(self.opened(request)?.timeline.send_single_receipt(ReceiptType::Read, event).await?))
            }
            "type" => done(self.room(request)?.typing_notice(request["on"] == true).await?),
            other => bail!("nobody can {other}"),
        }
    }
}

fn text<'a>(request: &'a Value, name: &str) -> Result<&'a str> {
    request[name].as_str().with_context(|| format!("{name} is missing"))
}

fn item(request: &Value) -> Result<TimelineEventItemId> {
    Ok(TimelineEventItemId::EventId(OwnedEventId::try_from(text(request, "event")?)?))
}

fn done(_: impl Sized) -> Result<Value> {
    Ok(Value::Null)
}

fn shown_room(item: &RoomListItem) -> Value {
    let counts = item.unread_notification_counts();
    json!({
        "id": item.room_id(),
        "name": item.cached_display_name().map(|name| name.to_string()),
        "membership": format!("{:?}", item.state()),
        "members": item.joined_members_count(),
        "isEncrypted": item.encryption_state().is_encrypted(),
        "unread": counts.notification_count,
    })
}

fn shown_item(item: &EventTimelineItem) -> Value {
    let content = item.content();
    let message = content.as_message();
    let reactions: HashMap<&str, Vec<&OwnedUserId>> = content
        .reactions()
        .map(|all| all.iter().map(|(key, by)| (key.as_str(), by.keys().collect())).collect())
        .unwrap_or_default();
    json!({
        "event": item.event_id(),
        "sender": item.sender(),
        "isEcho": item.is_local_echo(),
        "body": message.map(|message| message.body()),
        "isEdited": message.is_some_and(|message| message.is_edited()),
        "isUnreadable": content.is_unable_to_decrypt(),
        "isRedacted": content.is_redacted(),
        "wasEncrypted": item.encryption_info().is_some(),
        "reactions": reactions,
        "readBy": item.read_receipts().keys().collect::<Vec<_>>(),
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut people: HashMap<String, Person> = HashMap::new();
    let mut newcomers: HashMap<String, Newcomer> = HashMap::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut out = tokio::io::stdout();
    while let Some(line) = lines.next_line().await? {
        let request: Value = serde_json::from_str(&line)?;
        let who = text(&request, "who")?;
        let act = text(&request, "do")?;
        let outcome = match (newcomers.get_mut(who), people.get_mut(who)) {
            (Some(newcomer), _) => newcomer.act(act, &request).await,
            (_, Some(person)) => person.act(&request).await,
            _ if act == "come" => Newcomer::new(&request).await.map(|newcomer| {
                newcomers.insert(who.to_owned(), newcomer);
                Value::Null
            }),
            _ => Person::enter(&request).await.map(|person| {
                people.insert(who.to_owned(), person);
                Value::Null
            }),
        };
        let answer = match outcome {
            Ok(value) => json!({ "value": value }),
            Err(error) => json!({ "error": format!("{error:#}") }),
        };
        out.write_all(format!("{answer}\n").as_bytes()).await?;
        out.flush().await?;
    }
    Ok(())
}
