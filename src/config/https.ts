import { Type } from '../core/shapes.ts'
import { OF_NODE, section, text } from './parts.ts'

export const httpsSection = section(
  'HTTPS served by Hearth itself, beside `listen`, for servers without a reverse proxy. It is on if a certificate is given.',
  {
    certificate_file: Type.Optional(
      text(
        'The certificate with its whole chain (PEM), such as `fullchain.pem`. Both files are read again when they change, and on SIGHUP; if they cannot be used, the old ones stay in use.',
        { path: true, minLength: 1, example: '/etc/letsencrypt/live/example.org/fullchain.pem' },
      ),
    ),
    key_file: Type.Optional(
      text('The private key of the certificate (PEM).', {
        path: true,
        minLength: 1,
        example: '/etc/letsencrypt/live/example.org/privkey.pem',
      }),
    ),
    host: text('Address to listen on; `0.0.0.0` for all of IPv4, `::` for all.', { default: '::', minLength: 1 }),
    ports: Type.Array(Type.Integer({ minimum: 0, maximum: 65_535 }), {
      description:
        'Ports to listen on. Each serves everything; clients use 443, other servers 8448; 0 takes a free one.',
      default: [8448],
      minItems: 1,
      maxItems: 10,
      example: [443, 8448],
    }),
  },
  OF_NODE,
)
