import { parseArgs } from 'node:util'
import type { Config } from '../config/schema.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from './command.ts'
import { ensureDataDirectory } from './data-directory.ts'
import { invitations } from './identity-invitations.ts'
import { identityKeyPath, loadIdentityKeys, rotateIdentityKey } from './identity-key-file.ts'
import { rotatePepper } from './identity-pepper.ts'
import { previewMail } from './identity-preview-mail.ts'

interface Values {
  readonly cancel?: string
  readonly json?: boolean
}

const ACTIONS: Readonly<Record<string, (host: Host, config: Config, values: Values) => Promise<void>>> = {
  'show-keys': showKeys,
  'rotate-key': rotateKey,
  'rotate-pepper': rotatePepper,
  invitations,
}

const OPTIONS = {
  ...CONFIG_OPTIONS,
  brand: { type: 'string' },
  language: { type: 'string' },
  cancel: { type: 'string' },
  json: { type: 'boolean' },
} as const

export const identityCommand: Command = {
  usage: `show-keys | rotate-key | rotate-pepper | invitations [--cancel ID] [--json]
       | preview-mail [NAME] [--brand BRAND] [--language TAG]
       all with [--config FILE] [--set KEY=VALUE]...

  show-keys    prints the identity service's long-term keys: the one in use, and those that were and are still recognised
  rotate-key   makes a new key, which is in use from the server's next start on; the one before stays recognised
               until its line is removed from identity.key
  rotate-pepper
               replaces the pepper that addresses are hashed with for lookups, while the server runs or not; a rotation
               that was broken off is finished
  invitations  lists the invitations to addresses that no homeserver has taken yet, or cancels one, which is then good for
               nothing; while the server runs or not
  preview-mail prints a message made of samples, as it would be sent: NAME is validate-email,
               reset-password, invite or validate-msisdn; --brand and --language choose among the templates`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true })
    const [name = '', ...rest] = positionals
    if (name === 'preview-mail' && rest.length <= 1) {
      const { config } = readConfig(host, values)
      const { brand, language } = values
      host.print((await previewMail(config, { name: rest[0], brand, language })).trimEnd())
      return EXIT.ok
    }
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
    if (action === undefined || rest.length > 0) {
      throw new UsageError('say "show-keys", "rotate-key", "rotate-pepper", "invitations" or "preview-mail"')
    }
    const { config } = readConfig(host, values)
    await ensureDataDirectory(config.data_dir, host.uid)
    await action(host, config, values)
    return EXIT.ok
  },
}

async function showKeys(host: Host, { data_dir }: Config): Promise<void> {
  const { current, old } = await loadIdentityKeys(data_dir)
  host.print(`${current.keyId} ${current.publicKey}`)
  for (const { keyId, publicKey } of old) host.print(`${keyId} ${publicKey} (old)`)
}

async function rotateKey(host: Host, { data_dir }: Config): Promise<void> {
  const { current } = await rotateIdentityKey(data_dir)
  host.print(`${current.keyId} ${current.publicKey}\n(secret half in ${identityKeyPath(data_dir)})`)
  host.print('Restart the server to put it into use.')
}
