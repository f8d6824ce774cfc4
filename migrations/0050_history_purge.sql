-- History that operators remove: events of a room before a point. State stays.

CREATE TABLE history_purge (
  purge_id text COLLATE "C" PRIMARY KEY,
  room_nid bigint NOT NULL,
  -- Events up to this position of the timeline go, and events outside the timeline below this number.
  up_to_pos bigint NOT NULL,
  up_to_nid bigint NOT NULL,
  -- Whether events of users of this server go too.
  with_local boolean NOT NULL,
  -- The position of the timeline up to which it is done; NULL before the beginning.
  done_pos bigint,
  removed bigint NOT NULL DEFAULT 0,
  error text,
  asked_at bigint NOT NULL,
  ended_at bigint
);
CREATE UNIQUE INDEX history_purge_open ON history_purge (room_nid) WHERE ended_at IS NULL;
CREATE INDEX history_purge_ended ON history_purge (ended_at) WHERE ended_at IS NOT NULL;

-- The position of the timeline up to which history was removed: there is nothing to page through, and nothing to fetch from others.
ALTER TABLE room ADD COLUMN purged_to bigint;
