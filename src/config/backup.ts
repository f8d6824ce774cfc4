import { Type } from '../core/shapes.ts'
import { flag, integer, section, text } from './parts.ts'

export const backupSection = section(
  'Backups of everything: the database, media, keys and the configuration (`hearth backup`).',
  {
    place: Type.Optional(
      text(
        'Where backups go: the path of a directory on another disk than `data_dir`, or `s3://bucket/prefix`. The place is for backups of this server alone.',
        {
          pattern: '^(/|s3://).+$',
          example: '/mnt/backups/hearth',
        },
      ),
    ),
    every_hours: integer(
      'Hours between backups that the server makes by itself, in a process of its own. 0: none; `hearth backup` makes one.',
      0,
      0,
      8_760,
    ),
    journal_minutes: integer(
      'Minutes after which the server writes beside the newest backup what ended since: sessions, passwords, accounts, messages, media. A restore ends it again. Nothing is written while nothing ends. 0: only when a backup is made.',
      5,
      0,
      1_440,
    ),
    point_in_time: flag(
      'Whether a restore can go to any moment (`hearth restore --to TIME`): the log of the embedded Postgres goes to the backups every `journal_minutes`, and each backup copies its files too. It takes the space of the database twice more, and of all that is written since the older copy.',
      false,
    ),
    keep: text(
      'Which backups are kept, when another was made: the newest of each of so many days, weeks and months. Empty: all.',
      { default: '7d,4w,12m', pattern: '^(\\d{1,4}[dwm],?){0,3}$' },
    ),
    passphrase: Type.Optional(
      text('Encrypts backups, in the age format. Without it they cannot be restored: keep it somewhere else too.', {
        minLength: 8,
        secret: true,
        example: 'correct horse battery staple',
      }),
    ),
    recipients: Type.Array(Type.String({ pattern: '^age1[a-z0-9]{20,4000}$' }), {
      description:
        'Public keys of age for which backups are encrypted. Their secret keys restore them, and need not be on this machine.',
      default: [],
      maxItems: 20,
      example: ['age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p'],
    }),
    with_secrets: flag(
      'Whether the configuration is in the backups with its secrets. Only sensible if they are encrypted.',
      false,
    ),
    s3: section(
      'The S3 service of a `place` that begins with `s3://`. What is not set here is as in `media.s3`. Its address must be on the public internet or in `outbound.allow_ranges`.',
      {
        endpoint: Type.Optional(
          text('Address of the service, without the bucket.', {
            format: 'http-url',
            example: 'https://s3.eu-central-1.amazonaws.com',
          }),
        ),
        region: Type.Optional(text("Region, in the service's spelling.", { minLength: 1, example: 'eu-central-1' })),
        access_key_id: Type.Optional(text('Access key id.', { minLength: 1, example: 'AKIAIOSFODNN7EXAMPLE' })),
        secret_access_key: Type.Optional(
          text('Secret access key.', { minLength: 1, secret: true, example: 'a long secret' }),
        ),
      },
    ),
  },
)
