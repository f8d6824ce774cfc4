import type { ServerName } from '../core/ids.ts'
import { Type } from '../core/shapes.ts'
import { choice, OF_NODE, section, text } from './parts.ts'

export const outboundSection = section('Calls of this server to other homeservers, identity servers and gateways.', {
  allow_ranges: Type.Array(Type.String({ format: 'cidr' }), {
    description:
      'Addresses or CIDR ranges outside the public internet that may be called. All other such addresses are refused, whatever name leads there.',
    default: [],
    maxItems: 100,
    example: ['10.0.0.0/8'],
  }),
  ca_file: Type.Optional(
    text('Certificates (PEM) of additional authorities that may sign certificates of other servers.', {
      path: true,
      minLength: 1,
      example: '/etc/ssl/our-ca.pem',
      ...OF_NODE,
    }),
  ),
  proxy: Type.Optional(
    text(
      'An HTTP proxy (`http://` or `https://`, with user name and password if it wants them) through which other homeservers, identity servers, push gateways, pages for previews and an S3 service are called, by CONNECT. Names are still resolved here, and `allow_ranges` still counts. Application services and LiveKit are called directly.',
      { secret: true, format: 'proxy-url', example: 'http://user:password@proxy.example.org:3128', ...OF_NODE },
    ),
  ),
  no_proxy: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Names (with their subdomains), addresses and CIDR ranges that are called directly, past the proxy.',
    default: ['localhost', '127.0.0.0/8', '::1'],
    maxItems: 100,
    example: ['example.org', '10.0.0.0/8'],
    ...OF_NODE,
  }),
  dialect: choice(
    'The paths for calls to other homeservers: `/_matrix`, `/_proto`, or `auto`: `/_matrix`, and `/_proto` if a server does not know that.',
    ['auto', 'matrix', 'proto'],
    'auto',
  ),
  key_servers: Type.Array(Type.Unsafe<ServerName>({ type: 'string', format: 'server-name' }), {
    description:
      'Homeservers that are asked, in this order, for the keys of a server that does not answer; if many keys are needed at once, they are asked first. Choose them with care: their answers are trusted, so they can impersonate other servers.',
    default: [],
    maxItems: 10,
    example: ['matrix.org'],
  }),
})
