-- What unread counts need beside the room's own counter: events in threads, redacted events, and what single users are notified of.
--
-- `room.notifiable` and `event.notifiable` count the main timeline from here on. Events in threads that were written before stay in it.

-- An event of the timeline that is in a thread, from when it was written.
CREATE TABLE thread_event (
  room_nid bigint NOT NULL,
  room_pos bigint NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  sender_nid bigint NOT NULL,
  -- 1 if it counts as unread for all who have the default rules, 0 otherwise and after its redaction.
  counts smallint NOT NULL,
  PRIMARY KEY (room_nid, room_pos)
);
CREATE INDEX thread_event_root ON thread_event (room_nid, root_id, room_pos) INCLUDE (sender_nid, counts);

-- The newest event of each thread that counts.
CREATE TABLE unread_thread (
  room_nid bigint NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  last_pos bigint NOT NULL,
  PRIMARY KEY (room_nid, root_id)
);
CREATE INDEX unread_thread_newest ON unread_thread (room_nid, last_pos);

-- Redacted events that `notifiable` counted.
CREATE TABLE uncounted_event (
  room_nid bigint NOT NULL,
  room_pos bigint NOT NULL,
  PRIMARY KEY (room_nid, room_pos)
);

-- Events that are something else to a user than to all: a mention, or what the user's own rules say. Takes the place of `highlight`.
CREATE TABLE unread_event (
  user_nid bigint NOT NULL,
  room_nid bigint NOT NULL,
  room_pos bigint NOT NULL,
  -- '' for the main timeline
  root_id text COLLATE "C" NOT NULL,
  -- Each 0 or 1: whether it notifies the user, whether it stands out, and whether it counts for all who have the default rules.
  notifies smallint NOT NULL,
  highlights smallint NOT NULL,
  counts smallint NOT NULL,
  PRIMARY KEY (user_nid, room_nid, room_pos)
);
CREATE INDEX unread_event_room ON unread_event (room_nid, room_pos);

INSERT INTO unread_event (user_nid, room_nid, room_pos, root_id, notifies, highlights, counts)
SELECT user_nid, highlight.room_nid, room_pos, '', 1, 1, 1 FROM highlight JOIN event USING (event_nid) WHERE room_pos IS NOT NULL;

-- Where the messages of a room began to notify a user, because of a change of the user's rules. Earlier ones do not count.
CREATE TABLE counted_from (
  user_nid bigint NOT NULL,
  room_nid bigint NOT NULL,
  room_pos bigint NOT NULL,
  -- `notifiable` there
  notifiable bigint NOT NULL,
  PRIMARY KEY (user_nid, room_nid)
);
CREATE INDEX counted_from_room ON counted_from (room_nid);
