-- What unread counts need of ignored users: one row for an event, however many of its readers ignore the sender.

-- An event that counts as unread, and whose sender somebody in the room ignored when it came.
CREATE TABLE ignored_event (
  room_nid bigint NOT NULL,
  room_pos bigint NOT NULL,
  sender_nid bigint NOT NULL,
  event_nid bigint NOT NULL,
  -- '' for the main timeline
  root_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (room_nid, room_pos)
);

-- After which event a user began to ignore somebody, and up to which one they did; NULL as long as they do. Whoever is ignored without such
-- a row was so before any event in `ignored_event`.
CREATE TABLE ignored_sender (
  user_nid bigint NOT NULL,
  sender_id text COLLATE "C" NOT NULL,
  since_nid bigint NOT NULL,
  until_nid bigint,
  PRIMARY KEY (user_nid, sender_id, since_nid)
);
