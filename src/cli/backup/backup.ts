import { parseArgs } from 'node:util'
import { readKeep } from '../../core/backup/retention.ts'
import { CONFIG_OPTIONS, type Command, readConfig, UsageError } from '../command.ts'
import { createLog } from '../serve/log.ts'
import { journalPlace } from './journal.ts'
import { listPlace, verifyPlace } from './look-at-backups.ts'
import { makeOne } from './make-one.ts'
import { openPlace, PLACE_OPTIONS, placeOf, secretsOf } from './place.ts'
import { openTrusted, TRUST_OPTIONS } from './trust.ts'

const OPTIONS = {
  ...CONFIG_OPTIONS,
  ...PLACE_OPTIONS,
  ...TRUST_OPTIONS,
  keep: { type: 'string' },
  'with-secrets': { type: 'boolean' },
  id: { type: 'string' },
  repair: { type: 'boolean' },
  json: { type: 'boolean' },
} as const

export const backupCommand: Command = {
  usage: `[PLACE] [--passphrase | --passphrase-file FILE] [--recipient KEY]... [--keep 7d,4w,12m] [--with-secrets]
       backup list [PLACE] [--json]
       backup verify [PLACE] [--id ID] [--passphrase | --passphrase-file FILE | --identity-file FILE] [--signed-by KEY]... [--repair]
       backup journal [PLACE] [--passphrase | --passphrase-file FILE] [--recipient KEY]...
       all with [--config FILE] [--set KEY=VALUE]...

Makes a backup of everything, while the server runs or not: the database, media, signing keys and the configuration.

  PLACE             a directory, or s3://bucket/prefix; else backup.place
  --passphrase      encrypts it; the passphrase is asked for, or read from a file
  --recipient       encrypts it for whoever has the secret key of this age key
  --keep            keeps the newest backup of each of so many days, weeks and months, and removes the others
  --with-secrets    puts the secrets of the configuration into it
  list              the whole backups of a place
  verify            reads a backup back: who made it, hashes, rows, encryption; and checks some rooms of the database if there is one
  --repair          with verify: puts media of the server in place of damaged and missing ones
  journal           writes beside the newest backup what ended since, so that a restore ends it again: sessions, passwords, accounts, messages,
                    media. The server does it by itself where backup.place is set (backup.journal_minutes)
  --id              not the newest backup, but this one
  --identity-file   a secret key of age, AGE-SECRET-KEY-1...
  --signed-by       the public signing key of the server, as hearth keys show prints it; needed where neither passphrase nor key file is
  --even-if-unsigned  although nothing shows who made it, as with backups of early releases

A backup that was cut off counts as none. The next one goes on with the media that are there. hearth restore brings one back.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true })
    const [first] = positionals
    const action = first === 'list' || first === 'verify' || first === 'journal' ? first : 'make'
    const [named, ...rest] = action === 'make' ? positionals : positionals.slice(1)
    if (rest.length > 0) throw new UsageError(`"${rest[0]}" is not understood`)
    const loaded = readConfig(host, values)
    const { config } = loaded
    const keep = values.keep ?? config.backup.keep
    if (keep !== '' && readKeep(keep) === undefined)
      throw new UsageError('--keep takes days, weeks and months, such as 7d,4w,12m')
    // It writes for whoever the manifest names as readers.
    if (values.repair === true && values['even-if-unsigned'] === true)
      throw new UsageError('--repair needs a backup that is signed')
    const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
    const store = await openPlace(placeOf(named, config), host, config, log)
    try {
      if (action === 'list') return await listPlace(host, store, values.json === true)
      const secrets = await secretsOf(host, values, config)
      if (action === 'journal') return await journalPlace({ host, config, log, store, secrets })
      if (action === 'verify')
        return await verifyPlace({
          host,
          config,
          log,
          store,
          opened: await openTrusted(store, config, secrets, values),
          repair: values.repair === true,
        })
      const withSecrets = values['with-secrets'] ?? config.backup.with_secrets
      return await makeOne({ host, loaded, log, store, secrets, keep, withSecrets })
    } finally {
      await store.close()
    }
  },
}
