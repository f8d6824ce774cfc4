import { parseArgs } from 'node:util'
import type { Config } from '../../config/schema.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from '../command.ts'
import { inLines } from '../in-lines.ts'
import { ensureDataDirectory } from '../serve/data-directory.ts'
import { identityKeyPath, loadIdentityKeys, rotateIdentityKey } from '../serve/identity-key-file.ts'
import { invitations } from './identity-invitations.ts'
import { rotatePepper } from './identity-pepper.ts'
import { erasePerson, showPerson } from './identity-person.ts'
import { previewMail } from './identity-preview-mail.ts'
import { PAGE_NAMES, previewPage } from './identity-preview-page.ts'

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

const PREVIEWS: Readonly<Record<string, typeof previewMail>> = {
  'preview-mail': previewMail,
  'preview-page': previewPage,
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
       | show WHO [--json] | erase WHO
       | preview-mail [NAME] [--brand BRAND] [--language TAG]
       | preview-page [NAME] [--language TAG]
       all with [--config FILE] [--set KEY=VALUE]...

  show-keys    prints the identity service's long-term keys: the one in use, and those that were and are still recognised
  rotate-key   makes a new key, which is in use from the server's next start on; the one before stays recognised
               until its line is removed from identity.key
  rotate-pepper
               replaces the pepper that addresses are hashed with for lookups, while the server runs or not; a rotation
               that was broken off is finished
  invitations  lists the invitations to addresses that no homeserver has taken yet, or cancels one, which is then good for
               nothing; while the server runs or not
  show         what is kept of one person: account, bindings, validations of addresses, pending invitations. WHO is an email
               address, a phone number (+44...) or a user id (@alice:example.org; @alice is one of this server)
  erase        removes all of that, of a user also the account and its tokens, and says what it was: nobody finds the person any
               more. Addresses of the account on the homeserver stay there. While the server runs or not
  preview-mail prints a message made of samples, as it would be sent: NAME is validate-email,
               reset-password, invite, unread, new-login or validate-msisdn; --brand and --language choose among the templates
  preview-page prints a page made of samples, as a browser would get it (put it into a file and open that); NAME is one of
${inLines(
  PAGE_NAMES.map((name) => name.replace(/\.page$/, '')),
  { indent: 15, width: 118 },
)}`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true })
    const [name = '', ...rest] = positionals
    const preview = Object.hasOwn(PREVIEWS, name) ? PREVIEWS[name] : undefined
    if (preview !== undefined && rest.length <= 1) {
      const { config } = readConfig(host, values)
      const { brand, language } = values
      host.print((await preview(config, { name: rest[0], brand, language })).trimEnd())
      return EXIT.ok
    }
    if (name === 'show' || name === 'erase') {
      const [person, ...more] = rest
      if (person === undefined || person === '' || more.length > 0) throw new UsageError(`say "${name} WHO"`)
      const { config } = readConfig(host, values)
      if (name === 'show') await showPerson(host, config, person, values.json === true)
      else await erasePerson(host, config, person)
      return EXIT.ok
    }
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
    if (action === undefined || rest.length > 0) {
      throw new UsageError(
        'say "show WHO", "erase WHO", "show-keys", "rotate-key", "rotate-pepper", "invitations", "preview-mail" or "preview-page"',
      )
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
