-- What a server is owed that comes back after a long time.

-- Users by their server.
CREATE INDEX matrix_user_server ON matrix_user (substr(user_id, strpos(user_id, ':') + 1));

-- Events of ours by which the last user of a server was put out of a room, so that the room leads there no more: they are owed still.
CREATE TABLE federation_parting (
  server text COLLATE "C" NOT NULL,
  event_nid bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (server, event_nid)
);
CREATE INDEX federation_parting_age ON federation_parting USING brin (created_at);
