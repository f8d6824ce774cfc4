-- The words of messages, room names and topics, for POST search. Written in the background, and made again from the events by a command.

CREATE TABLE search_text (
  event_nid bigint PRIMARY KEY,
  ts bigint NOT NULL,
  -- The words, and beside them the room and the kind of the text, by which searches choose.
  words tsvector NOT NULL
);
-- Without a list of pending entries: emptying it would hold up a reader or a writer for long.
CREATE INDEX search_text_words ON search_text USING gin (words) WITH (fastupdate = off);

-- Every event up to this number was looked at.
CREATE TABLE search_position (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  event_nid bigint NOT NULL
);
INSERT INTO search_position (event_nid) VALUES (0);
