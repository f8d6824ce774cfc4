-- Where the content stands in `json`, in bytes: its beginning times 65536, and its length. Null for events of which clients are sent more than
-- the content and what columns say, or whose text is not as servers usually write it.
ALTER TABLE event ADD COLUMN content_place integer;
