-- What a room showed to a user of ours who was invited from elsewhere, or who knocked: nobody here is in the room.
CREATE TABLE stripped_state (
  event_id text COLLATE "C" PRIMARY KEY,
  -- JSON: [{type, state_key, sender, content}]
  state text NOT NULL
);
