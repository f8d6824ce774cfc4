-- Events of other servers that only this one was given, by a handshake: it owes them to the other servers of their rooms, as its own.
CREATE TABLE federation_forward (
  event_nid bigint PRIMARY KEY,
  -- Who gave it, and needs it no more.
  from_server text COLLATE "C" NOT NULL,
  -- Whether who lacks it is noted in `federation_destination`.
  is_spread boolean NOT NULL DEFAULT false,
  created_at bigint NOT NULL
);
CREATE INDEX federation_forward_due ON federation_forward (event_nid) WHERE NOT is_spread;
CREATE INDEX federation_forward_age ON federation_forward USING brin (created_at);
