import { existsSync } from 'node:fs'
import type { Config } from '../../config/schema.ts'
import type { KnownKeys } from '../../domain/room-audit/event-checks.ts'
import { auditRoom } from '../../domain/room-audit/room-audit.ts'
import type { AuditTally } from '../../domain/room-audit/tally.ts'
import type { Reader } from '../../store/db/db.ts'
import { getRooms } from '../../store/rooms/rooms.ts'
import { EXIT, type Host } from '../command.ts'
import { loadSigningKey, signingKeyPath } from '../serve/signing-key-file.ts'

const PROGRESS_EVERY_MS = 2_000

/** Prints a line per finding and a summary. Gives the exit code. */
export async function verifyRoom(host: Host, config: Config, reader: Reader, roomNid: number): Promise<number> {
  const [row] = await getRooms(reader, [roomNid])
  host.print(`${row!.room_id}, room version ${row!.room_version}`)
  let findings = 0
  let reportedAt = performance.now()
  const tally = await auditRoom({
    db: reader,
    roomNid,
    knownKeys: await ownKeys(config),
    found({ eventId, what }) {
      findings++
      host.print(`  ${eventId ?? 'the room'}: ${what}`)
    },
    progress(events, of) {
      if (performance.now() - reportedAt < PROGRESS_EVERY_MS) return
      reportedAt = performance.now()
      host.complain(`${Math.floor((100 * events) / of)}%: ${number(events)} of ${number(of)} events`)
    },
  })
  host.print(summary(tally))
  host.print(findings === 0 ? 'All of it is right.' : `${number(findings)} finding${findings === 1 ? '' : 's'}.`)
  return findings === 0 ? EXIT.ok : EXIT.failure
}

/** The keys of this server, if its key file exists. Keys of other servers are not available. */
async function ownKeys(config: Config): Promise<KnownKeys> {
  if (!existsSync(signingKeyPath(config.data_dir))) return () => []
  const { current, former } = await loadSigningKey(config.data_dir)
  const { keyId, publicKey } = current
  const own = [
    { keyId, publicKey, validUntilTs: Number.MAX_SAFE_INTEGER },
    ...former.map((key) => ({ keyId: key.keyId, publicKey: key.publicKey, validUntilTs: key.expiredTs })),
  ]
  return (server, keyIds) => (server === config.server_name ? own.filter((key) => keyIds.includes(key.keyId)) : [])
}

const number = (value: number): string => value.toLocaleString('en')

function summary(tally: AuditTally): string {
  const unless = (count: number, text: string) => (count === 0 ? '' : `, ${number(count)} ${text}`)
  return [
    ['events', number(tally.events)],
    [
      'hashes',
      `${number(tally.hashes)} checked${unless(tally.redactedCopies, 'redacted, so that nothing is left to be hashed')}`,
    ],
    [
      'signatures',
      `${number(tally.signatures)} checked${unless(tally.uncheckedSignatures, 'not checked: no key at hand')}`,
    ],
    [
      'verdicts',
      `${number(tally.verdicts)} checked${unless(tally.uncheckedVerdicts, 'of which what they looked at was redacted')}`,
    ],
    [
      'states',
      `${number(tally.states)} computed again, ${number(tally.resolutions)} by resolution${unless(tally.uncheckedStates, 'not checked: events before are missing')}`,
    ],
    ['checkpoints', number(tally.checkpoints)],
    ['members', number(tally.members)],
  ]
    .map(([name, text]) => `  ${name!.padEnd(12)}${text}`)
    .join('\n')
}
