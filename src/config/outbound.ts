import type { ServerName } from '../core/ids.ts'
import { Type } from '../core/shapes.ts'
import { choice, section, text } from './parts.ts'

export const outboundSection = section('What this server calls: other homeservers, identity servers, gateways.', {
  allow_ranges: Type.Array(Type.String({ format: 'cidr' }), {
    description:
      'Addresses or CIDR ranges that may be called although they are not on the public internet. All others that are not are refused, whatever name leads there.',
    default: [],
    maxItems: 100,
    example: ['10.0.0.0/8'],
  }),
  ca_file: Type.Optional(
    text('Certificates (PEM) of authorities that may vouch for other servers, besides the usual ones.', {
      path: true,
      minLength: 1,
      example: '/etc/ssl/our-ca.pem',
    }),
  ),
  dialect: choice(
    'The paths that other homeservers are asked by: `/_matrix`, `/_proto`, or `auto`: the first, and the second where a server does not know it.',
    ['auto', 'matrix', 'proto'],
    'auto',
  ),
  key_servers: Type.Array(Type.Unsafe<ServerName>({ type: 'string', format: 'server-name' }), {
    description:
      'Homeservers that are asked, in this order, for the keys of one that does not answer; and before it, while many are asked at once. What they say is believed: it lets them speak for others.',
    default: [],
    maxItems: 10,
    example: ['matrix.org'],
  }),
})
