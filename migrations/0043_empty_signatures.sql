-- A cross-signing key comes back as it was uploaded: also one that came without signatures, or with an empty object in their place.
-- That object as JSON; null where there was none. The release before leaves it out.
ALTER TABLE cross_signing_key ADD COLUMN empty_signatures text;
