-- The threads that users follow, and those that they no longer want to follow (MSC4306).

CREATE TABLE thread_subscription (
  user_nid bigint NOT NULL,
  room_nid bigint NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  is_subscribed boolean NOT NULL,
  -- Whether a client subscribed by itself, because of an event.
  is_automatic boolean NOT NULL,
  -- The end of the room's timeline when the user unsubscribed: no event before it subscribes them again.
  unsubscribed_pos bigint,
  -- Position in the ledger.
  position bigint NOT NULL,
  PRIMARY KEY (user_nid, room_nid, root_id)
);
CREATE INDEX thread_subscription_position ON thread_subscription (user_nid, position);
CREATE INDEX thread_subscription_room ON thread_subscription (room_nid);
