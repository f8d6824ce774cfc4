-- Room upgrades: which room replaces which, so that a repeated request gives the same room, and a restart goes on with what had begun.

CREATE TABLE room_upgrade (
  new_room_nid bigint PRIMARY KEY,
  -- The room that is replaced.
  room_nid bigint NOT NULL,
  new_room_id text COLLATE "C" NOT NULL UNIQUE,
  room_version text COLLATE "C" NOT NULL,
  -- The user who upgrades it, and creates the new one.
  user_id text COLLATE "C" NOT NULL,
  -- The content of the new room's create event, without `predecessor.event_id`: JSON.
  creation text NOT NULL,
  created_ts bigint NOT NULL,
  -- The event that took the right to send messages in the old room, NULL where there is none.
  closing_nid bigint,
  is_done boolean NOT NULL DEFAULT false
);
CREATE INDEX room_upgrade_room ON room_upgrade (room_nid);
CREATE INDEX room_upgrade_open ON room_upgrade (new_room_nid) WHERE NOT is_done;
