-- Files of users and of other servers, and what is known of them. The bytes themselves are in the media store.

-- Bytes, kept once however many files have them.
CREATE TABLE media_content (
  -- SHA-256.
  digest bytea PRIMARY KEY,
  bytes bigint NOT NULL,
  -- Whether the store has them: said after it has, and taken back before it has not.
  is_stored boolean NOT NULL,
  -- Perhaps nothing refers to them: the sweeper has a look.
  is_loose boolean NOT NULL,
  -- When somebody last was about to refer to them.
  wanted_at bigint NOT NULL,
  -- The operator who hides them from everybody, whoever uploads them.
  quarantined_by text
);

CREATE INDEX media_content_loose ON media_content (wanted_at) WHERE is_loose;

CREATE TABLE media (
  media_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Of mxc://server_name/media_id.
  server_name text COLLATE "C" NOT NULL,
  media_id text COLLATE "C" NOT NULL,
  -- Who uploaded it here; none for what other servers and previews brought.
  user_nid bigint REFERENCES matrix_user,
  -- NULL: the name is given out, the upload is still to come.
  digest bytea REFERENCES media_content,
  content_type text,
  file_name text,
  created_at bigint NOT NULL,
  -- Last shown to somebody, to the day.
  seen_at bigint NOT NULL,
  -- When the name, or what a preview shows, is given up.
  expires_at bigint,
  -- Whether those without a token may have it.
  is_open boolean NOT NULL,
  -- Never quarantined along with other media.
  is_protected boolean NOT NULL DEFAULT false,
  UNIQUE (server_name, media_id)
);

CREATE INDEX media_by_user ON media (user_nid, media_nid) WHERE user_nid IS NOT NULL;
CREATE INDEX media_by_content ON media (digest) WHERE digest IS NOT NULL;
CREATE INDEX media_by_end ON media (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX media_by_sight ON media (seen_at);

-- Smaller pictures of pictures, themselves content.
CREATE TABLE media_thumbnail (
  source bytea NOT NULL REFERENCES media_content ON DELETE CASCADE,
  -- Method, size and whether it moves: crop-96x96, scale-800x600-animated.
  variant text COLLATE "C" NOT NULL,
  digest bytea NOT NULL REFERENCES media_content,
  content_type text NOT NULL,
  PRIMARY KEY (source, variant)
);

CREATE INDEX media_thumbnail_by_content ON media_thumbnail (digest);

-- What pages say of themselves, as it was shown to users.
CREATE TABLE url_preview (
  -- SHA-256 of the URL.
  url_digest bytea PRIMARY KEY,
  -- JSON.
  body text NOT NULL,
  expires_at bigint NOT NULL
);

CREATE INDEX url_preview_by_end ON url_preview (expires_at);
