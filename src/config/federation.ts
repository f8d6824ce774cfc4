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
  'Other homeservers: with which ones this server deals, in and out. `allow` and `deny` are read again on SIGHUP.',
  {
    enabled: flag(
      'Switch for all of it. Without it this server answers no other and asks none, not even to learn whom an OpenID token of theirs stands for.',
      true,
    ),
    allow: servers(
      'Patterns of server names, with `*` and `?` and without ports; empty: all. With others nothing is exchanged. Their users may still be in rooms that servers named here are in, who pass on what they say.',
      '*.example.org',
    ),
    deny: servers('Patterns of server names that are shut out although `allow` lets them in.', 'spam.example'),
    requests_at_once: integer(
      'Signed requests of one server that are worked on at the same time; more wait.',
      8,
      1,
      1_000,
    ),
    requests_waiting: integer(
      'Signed requests of one server that may wait for their turn. Beyond them it is told 429 with `retry_after_ms`.',
      100,
      0,
      100_000,
    ),
  },
)
