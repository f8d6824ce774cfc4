import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { Config } from '../config/schema.ts'
import { createUser } from '../domain/accounts/create-user.ts'
import { createPasswords } from '../domain/accounts/passwords.ts'
import { openDatabase } from '../store/db.ts'
import { prepareDatabase } from '../store/prepare.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from './command.ts'
import { ensureDataDirectory } from './data-directory.ts'
import { borrowDatabase, MIGRATIONS } from './database.ts'
import { createLog } from './log.ts'

export const userCommand: Command = {
  usage: `create NAME [--admin] [--config FILE] [--set KEY=VALUE]...

  NAME      the part of the user id before the colon: alice, not @alice:example.org
  --admin   the account may administer this server

The password is asked for, or read from standard input when that is not a terminal.`,

  async run(host, words) {
    const options = { ...CONFIG_OPTIONS, admin: { type: 'boolean' } } as const
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
    const [action, username, ...rest] = positionals
    if (action !== 'create' || username === undefined || rest.length > 0) throw new UsageError('say "create NAME"')
    const { config } = readConfig(host, values)
    const password = await host.askSecret(`Password for ${username}: `)
    const userId = await makeUser(host, config, { username, password, isAdmin: values.admin ?? false })
    host.print(`${userId} can log in now.`)
    return EXIT.ok
  },
}

interface NewUser {
  readonly username: string
  readonly password: string
  readonly isAdmin: boolean
}

async function makeUser(host: Host, config: Config, user: NewUser): Promise<string> {
  await ensureDataDirectory(config.data_dir, host.uid)
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const database = await borrowDatabase(config, host.uid, log)
  try {
    await prepareDatabase(database.connection, MIGRATIONS, config.server_name)
    const db = openDatabase({ connection: database.connection, poolSize: 1 })
    const passwords = createPasswords({ config, random: { bytes: randomBytes } })
    try {
      return await createUser({ db, clock: Date, passwords, config }, user)
    } finally {
      await passwords.close()
      await db.close()
    }
  } finally {
    await database.stop()
  }
}
