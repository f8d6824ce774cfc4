import { randomBytes } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import { createUser } from '../domain/accounts/create-user.ts'
import { createPasswords } from '../domain/accounts/passwords.ts'
import { createAudit } from '../domain/admin/audit.ts'
import { COMMAND_LINE } from '../domain/admin/operators.ts'
import { openAppserviceNames } from '../domain/appservices/appservice-services.ts'
import { openDatabase } from '../store/db/db.ts'
import { prepareDatabase } from '../store/db/prepare.ts'
import type { Host } from './command.ts'
import { borrowDatabase, MIGRATIONS } from './database.ts'
import { ensureDataDirectory } from './serve/data-directory.ts'
import { createLog } from './serve/log.ts'

export interface NewUser {
  readonly username: string
  readonly password: string
  readonly isAdmin: boolean
}

/** Creates an account in the database, which is safe beside a running server: it has nothing about new accounts in memory. Gives the user id. */
export async function makeUser(host: Host, config: Config, user: NewUser): Promise<string> {
  await ensureDataDirectory(config.data_dir, host.uid)
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const database = await borrowDatabase(config, host.uid, log)
  try {
    await prepareDatabase(database.connection, MIGRATIONS, config.server_name)
    const db = openDatabase({ connection: database.connection, poolSize: 1 })
    const { exclusive: exclusiveUsers } = await openAppserviceNames(config, { bytes: randomBytes }, log)
    const passwords = createPasswords({ config, random: { bytes: randomBytes } })
    try {
      const act = { actor: COMMAND_LINE.name, act: 'user create', target: user.username }
      const create = () => createUser({ db, clock: Date, passwords, config, exclusiveUsers }, user)
      return await createAudit({ db, clock: Date }).record(act, create)
    } finally {
      await passwords.close()
      await db.close()
    }
  } finally {
    await database.stop()
  }
}
