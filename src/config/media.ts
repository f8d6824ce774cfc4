import { Type } from '../core/shapes.ts'
import { choice, flag, integer, OF_NODE, section, text } from './parts.ts'

const hosts = (description: string, example: readonly string[]) =>
  Type.Array(Type.String({ minLength: 1 }), { description, default: [], maxItems: 1_000, example })

export const mediaSection = section('Files that users upload, and files of other servers that they open.', {
  max_upload_bytes: integer('Largest file that users may upload.', 52_428_800, 1_024, 10_737_418_240),
  max_remote_bytes: integer(
    'Largest file of another server that is fetched for users.',
    104_857_600,
    1_024,
    10_737_418_240,
  ),
  max_bytes_per_user: integer(
    "Total size of one user's files; 0: no limit. Further uploads get 403.",
    0,
    0,
    1_125_899_906_842_624,
  ),
  reserved_disk_bytes: integer(
    'Free space to keep on the disk of `data_dir`; with less, uploads get 507. 0: 5% of the disk, at most 512 MiB.',
    0,
    0,
    1_125_899_906_842_624,
    OF_NODE,
  ),
  keep_local_days: integer(
    'Files of our users are deleted if nobody has used them for so many days, except pictures of users and rooms; 0: never.',
    0,
    0,
    36_500,
  ),
  keep_ended_days: integer(
    'Files of a deactivated account are deleted so many days after its end, except protected and hidden ones; 0: never.',
    0,
    0,
    36_500,
  ),
  keep_remote_days: integer(
    'Files of other servers are deleted if nobody has used them for so many days, and fetched again on use; 0: never.',
    30,
    0,
    36_500,
  ),
  without_token: choice(
    'Files that can be fetched without an access token, by the old endpoints: `frozen`, only files that were uploaded while this was `open`; `open`, all files. Clients before Matrix 1.11 need `open`. Servers that use the `_proto` dialect, which has no other endpoint, get the files of our users in both cases.',
    ['frozen', 'open'],
    'frozen',
  ),
  store: choice(
    'Where files are stored: `directory`, in `data_dir`; `s3`, in a service with the S3 protocol. A change does not move existing files.',
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
    region: text("Region, in the service's spelling.", { default: 'us-east-1', minLength: 1 }),
    prefix: text('Prefix of names in the bucket.', { default: '', pattern: '^[A-Za-z0-9._/-]{0,200}$' }),
    access_key_id: Type.Optional(text('Access key id.', { minLength: 1, example: 'AKIAIOSFODNN7EXAMPLE' })),
    secret_access_key: Type.Optional(
      text('Secret access key.', { minLength: 1, secret: true, example: 'a long secret' }),
    ),
  }),
  url_previews: section("Previews of web pages: this server fetches the pages behind users' links.", {
    enabled: flag('Whether clients may request previews.', false),
    allowed_hosts: hosts('Patterns of hosts from which pages are fetched, with `*` and `?`; empty: all.', [
      '*.example.org',
    ]),
    blocked_hosts: hosts('Patterns of hosts from which nothing is fetched.', ['*.internal.example.org']),
  }),
})
