-- The words by which users are found, for POST user_directory/search. Written when profiles change, and in the background from events.

CREATE TABLE directory_user (
  user_nid bigint PRIMARY KEY,
  display_name text,
  avatar_url text,
  -- The member event that told this, of a user of another server; 0 for users of this server.
  event_nid bigint NOT NULL
);
CREATE TABLE directory_word (
  word text COLLATE "C" NOT NULL,
  user_nid bigint NOT NULL,
  PRIMARY KEY (word, user_nid)
);
CREATE INDEX directory_word_user ON directory_word (user_nid, word);

-- Rooms that anyone may join or read: their members are found by everyone.
CREATE TABLE open_room (
  room_nid bigint PRIMARY KEY
);

-- Every event up to this number was looked at.
CREATE TABLE directory_position (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  event_nid bigint NOT NULL
);
INSERT INTO directory_position (event_nid) VALUES (0);
