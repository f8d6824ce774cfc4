/**
 * An SQL expression of JSON that Postgres can decode: with spaces in place of escapes such as \ud800. Postgres refuses to decode some of
 * them, and one text of somebody who knows that would spoil every list and count that it is in.
 */
export const decodable = (json: string): string => `(CASE WHEN position('\\u' IN ${json}) = 0 THEN ${json}
    ELSE regexp_replace(replace(${json}, '\\\\', ''), '\\\\u[0-9a-fA-F]{4}', ' ', 'g') END)::json`
