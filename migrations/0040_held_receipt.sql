-- What users of other servers have read in rooms whose members are still to come, until it is known whether they are in the room. The
-- newest of each user and thread.

CREATE TABLE held_receipt (
  room_nid bigint NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  -- '' for a receipt of the whole room.
  thread_id text COLLATE "C" NOT NULL,
  -- The server that told of it: the user's own.
  origin text COLLATE "C" NOT NULL,
  -- As it was told, `{event_ids, data}`.
  json text NOT NULL,
  PRIMARY KEY (room_nid, user_id, thread_id)
);
