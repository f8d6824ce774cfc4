import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_ROOT } from '../support/project.ts'

/** What was found from outside and must hold, by id. A test of a line has a title that begins with its id. */
export const LINES: Readonly<Record<string, string>> = {
  A1: 'Headers decide first; bodies share one budget, have a least rate and a time limit, and are verified before they are parsed',
  A2: 'One request reaches a bounded number of other servers',
  A3: 'One budget in bytes holds everything that is cached about rooms and events',
  A4: "One account's data does not hold up other readers",
  A5: 'Held syncs are bounded for each device and user, and wake in slices',
  A6: 'A held sync ends with its session',
  A7: 'A failed upload leaves no hanging connection, and a full disk leaves a reserve',
  A8: 'A stranger cannot lock an owner out',
  A9: 'Invitations, keys, addresses and connections are bounded before they cost anything',
  A10: 'Applied migrations never change, and the previous release runs on the newer database',
  B1: 'A redaction that takes no effect is not sent to clients',
  B2: 'Lazy loading tells of all membership changes in a gap, and a repeated sync tells of the same members',
  B3: 'Device lists tell of who left, changed keys and came back; new servers hear of a joining user',
  B4: 'A declined or rescinded invitation of another server is a well-formed event',
  B5: 'The own leave is shown whatever the filter; a timeline goes on past hidden events',
  B6: 'Filters by room of state, and by relation, are honoured',
  B7: 'Concurrent identical calls write one event',
  B8: 'Presence of new neighbours is in the next sync',
  B9: 'Guests leave when guest access ends, name themselves and list their devices',
  B10: 'Large integers of room versions 1 to 5 are kept exactly',
  B11: 'Contents of state events are checked',
  B12: 'A room that would lock its creator out is refused, and nothing is left behind',
  B13: 'Transaction ids belong to the session in one dialect and to the device in the other',
  B14: 'Deactivation and password changes answer as their texts say',
  B15: 'Small answers of onbind, messages, members and context',
  B16: 'Federation answers have the right codes, orders and fallbacks',
  B17: 'Notary, space hierarchy and server notices do not hold on to old answers',
  B18: 'Application services may do what their namespaces give them',
  B19: 'Keys are stored as they came, within limits of size and shape',
  B20: 'Events say who redacted them and what the reader was; empty rooms are left out',
  C1: 'New rooms are of version 11 by default',
  C2: '`null` and an empty query parameter are absence',
  C3: 'Small compatibility: content type, sends without transaction id, registration, mail links',
  C4: '`/versions` tells the truth',
  D1: '`hearth config check` finds everything that would end a start',
  D2: "Mails and pages carry the operator's name and words",
  D3: 'A request line that is too long is told so',
  D4: 'CORS is a library; two implementations agree before the first signature',
  D5: 'Whether an address is known can be hidden',
  E1: 'A storm of silent connections passes unnoticed',
  E2: 'Bodies that arrive a byte a second pass unnoticed',
}

export interface LineTest {
  readonly id: string
  /** `test/sync/gap.test.ts` */
  readonly file: string
  readonly title: string
}

const TITLE = /(?:test|it|describe)[\w.]*(?:\([^'"`]*\))?\(\s*(['"`])([A-E]\d{1,2}): ((?:(?!\1)[^\\]|\\.)+)\1/g

/** Every test whose title begins with the id of a line. */
export function findLineTests(): LineTest[] {
  const folder = join(PROJECT_ROOT, 'test')
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .sort()
    .flatMap((name) =>
      [...readFileSync(join(folder, name), 'utf8').matchAll(TITLE)].map(([, , id, title]) => ({
        id: id!,
        file: `test/${name.replaceAll('\\', '/')}`,
        title: title!.replace(/\\(.)/g, '$1'),
      })),
    )
}
