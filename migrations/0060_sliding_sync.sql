-- What the clients of sliding sync (MSC4186) were sent: one row per connection, with the record of its newest answer and of the one before,
-- from which a client may ask again.

CREATE TABLE sliding_connection (
  user_nid bigint NOT NULL,
  device_id text COLLATE "C" NOT NULL,
  -- The client's name for it; '' for none.
  conn_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  -- JSON: what was asked for, each wish once, and for each room the place of its wish and how far the client has it.
  record text NOT NULL,
  -- NULL where the newest answer was the first.
  base_version bigint,
  base_record text,
  used_at bigint NOT NULL,
  PRIMARY KEY (user_nid, device_id, conn_id),
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);
CREATE INDEX sliding_connection_used ON sliding_connection (used_at);

-- Facts by which lists of rooms are filtered are found without reading whole states.
CREATE INDEX state_key_fact ON state_key (room_nid, type) WHERE state_key = '' AND type IN ('m.room.create', 'm.room.encryption', 'm.room.name');

-- The newest receipts of a room are looked through for those at the events that a client begins with.
CREATE INDEX receipt_room ON receipt (room_nid, position);
