import { Type } from '../core/shapes.ts'
import { choice, flag, integer, section, text } from './parts.ts'

const hosts = (description: string, example: readonly string[]) =>
  Type.Array(Type.String({ minLength: 1 }), { description, default: [], maxItems: 1_000, example })

export const mediaSection = section('Files that users upload, and those of other servers that they look at.', {
  max_upload_bytes: integer('Largest file that users may upload.', 52_428_800, 1_024, 10_737_418_240),
  max_remote_bytes: integer(
    'Largest file of another server that is fetched for users.',
    104_857_600,
    1_024,
    10_737_418_240,
  ),
  max_bytes_per_user: integer(
    'What the files of one user may come to; 0: no bound. More is refused with 403.',
    0,
    0,
    1_125_899_906_842_624,
  ),
  reserved_disk_bytes: integer(
    'What files leave free on the disk of `data_dir`; less than that, and they are refused with 507. 0: 5% of the disk, at most 512 MiB.',
    0,
    0,
    1_125_899_906_842_624,
  ),
  keep_local_days: integer(
    'Files of our users are removed when nobody looked at them for so many days, except pictures of users and rooms; 0: never.',
    0,
    0,
    36_500,
  ),
  keep_remote_days: integer(
    'Files of other servers are removed when nobody looked at them for so many days; they are fetched again when somebody does. 0: never.',
    30,
    0,
    36_500,
  ),
  without_token: choice(
    'What those without an access token may fetch by the old endpoints: `frozen`, the files that were uploaded while this was `open`; `open`, all. Clients before Matrix 1.11 need `open`. Servers that ask in the `_proto` dialect, which has no other way, get the files of our users either way.',
    ['frozen', 'open'],
    'frozen',
  ),
  store: choice(
    'Where the files are: `directory`, beneath `data_dir`; `s3`, with a service that speaks the S3 protocol. Files stay where they are when this changes.',
    ['directory', 's3'],
    'directory',
  ),
  s3: section('The S3 service. Its address must be on the public internet or in `outbound.allow_ranges`.', {
    endpoint: Type.Optional(
      text('Address of the service, without the bucket.', {
        format: 'http-url',
        example: 'https://s3.eu-central-1.amazonaws.com',
      }),
    ),
    bucket: Type.Optional(text('Bucket.', { pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$', example: 'hearth-media' })),
    region: text('Region, as the service calls it.', { default: 'us-east-1', minLength: 1 }),
    prefix: text('What names in the bucket begin with.', { default: '', pattern: '^[A-Za-z0-9._/-]{0,200}$' }),
    access_key_id: Type.Optional(text('Access key id.', { minLength: 1, example: 'AKIAIOSFODNN7EXAMPLE' })),
    secret_access_key: Type.Optional(
      text('Secret access key.', { minLength: 1, secret: true, example: 'a long secret' }),
    ),
  }),
  url_previews: section('Previews of web pages: this server fetches what users have links to.', {
    enabled: flag('Whether clients may ask for them.', false),
    allowed_hosts: hosts('Patterns of hosts that pages are fetched from, with `*` and `?`; empty: all.', [
      '*.example.org',
    ]),
    blocked_hosts: hosts('Patterns of hosts that nothing is fetched from.', ['*.internal.example.org']),
  }),
})
