-- Rooms of others that were joined without most of their members, which are fetched afterwards, and what other servers sent for them
-- meanwhile.

CREATE TABLE room_filling (
  room_nid bigint PRIMARY KEY,
  -- The server that let us in, and those in the room by its word.
  resident text COLLATE "C" NOT NULL,
  servers text[] COLLATE "C" NOT NULL,
  -- Our join: the state before it is what is fetched.
  join_event_id text COLLATE "C" NOT NULL,
  since bigint NOT NULL,
  -- Rounds in which no server could be used, and why not the last of them.
  failures int NOT NULL DEFAULT 0,
  last_failure text,
  -- The position in the stream at which the room was whole; null until then, 0 where it was left before and joined anew.
  filled_at bigint
);

CREATE TABLE held_event (
  held_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  room_nid bigint NOT NULL,
  origin text COLLATE "C" NOT NULL,
  -- Canonical JSON.
  json text NOT NULL
);
CREATE INDEX held_event_room ON held_event (room_nid, held_nid);
