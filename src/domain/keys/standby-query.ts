import { type ServerName, serverOf } from '../../core/ids.ts'
import type { Reader } from '../../store/db/db.ts'
import { MAX_USERS_PER_KEY_QUERY } from '../limits.ts'
import { OnlyWhereServed } from '../standby/only-where-served.ts'
import { readLocalKeys } from './local-keys.ts'
import type { KeyQueries } from './query.ts'

/** Queries that a node which stands by can answer: those for keys of local users alone, which are rows. */
export function createStandbyKeyQueries({
  serverName,
  db,
}: {
  readonly serverName: ServerName
  readonly db: Reader
}): Pick<KeyQueries, 'query'> {
  return {
    async query(by, asked) {
      const isHere =
        asked.size <= MAX_USERS_PER_KEY_QUERY && [...asked.keys()].every((id) => serverOf(id) === serverName)
      if (!isHere) throw new OnlyWhereServed('keys of other servers are asked for')
      return { keys: await readLocalKeys(db, serverName, asked, by), failures: {} }
    },
  }
}
