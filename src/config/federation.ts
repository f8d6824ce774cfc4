import { Type } from '../core/shapes.ts'
import { flag, integer, section } from './parts.ts'

const servers = (description: string, example: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
    description,
    default: [],
    maxItems: 10_000,
    example: [example],
  })

export const federationSection = section(
  'Which other homeservers this server talks to, in and out. `allow` and `deny` are read again on SIGHUP.',
  {
    enabled: flag(
      'Switch for federation. If it is off, this server neither answers nor calls other servers, not even to check an OpenID token of theirs.',
      true,
    ),
    allow: servers(
      'Patterns of allowed server names, with `*` and `?` and without ports; empty: all. Nothing is exchanged with other servers. Their users may still be in the same rooms as allowed servers, which pass on their events.',
      '*.example.org',
    ),
    deny: servers('Patterns of server names that are refused even if `allow` matches.', 'spam.example'),
    requests_at_once: integer(
      'Signed requests of one server that are processed at the same time; more wait.',
      8,
      1,
      1_000,
    ),
    requests_waiting: integer(
      'Signed requests of one server that may wait. Further ones get 429 with `retry_after_ms`.',
      100,
      0,
      100_000,
    ),
  },
)
