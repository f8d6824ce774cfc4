import { compileGlobs, type TextMatcher } from './glob.ts'
import { serverOf, type UserId } from './ids.ts'
import { isObject, type JsonObject, type JsonValue } from './json.ts'

/** What happens to an invitation: it arrives, it arrives unseen, or it is refused. */
export type InviteVerdict = 'allow' | 'ignore' | 'block'

/** The types of account data by which users say who may invite them: of release 1.18, and from before (MSC4380, MSC4155). */
export const INVITE_PERMISSION_TYPES = [
  'm.invite_permission_config',
  'org.matrix.msc4380.invite_permission_config',
  'org.matrix.msc4155.invite_permission_config',
] as const

/** Longer globs, and more of them, are passed over. */
const MAX_GLOB_CHARS = 255
const MAX_GLOBS = 1_000

/**
 * What the contents of these types say of an invitation (client-server API, "Invite permission"; MSC4155). Users count before servers, and
 * among both those who are allowed before those who are ignored or blocked. What is malformed says nothing.
 */
export function inviteVerdict(
  configs: Readonly<Partial<Record<(typeof INVITE_PERMISSION_TYPES)[number], JsonObject>>>,
  sender: UserId,
): InviteVerdict {
  const [stable, early, listed] = INVITE_PERMISSION_TYPES.map((type) => configs[type])
  if (stable?.default_action === 'block' || early?.default_action === 'block') return 'block'
  if (listed === undefined || listed.enabled === false) return 'allow'
  for (const [of, text] of [
    ['users', sender],
    ['servers', serverOf(sender)],
  ] as const) {
    if (matcherOf(listed[`allowed_${of}`])(text)) return 'allow'
    if (matcherOf(listed[`ignored_${of}`])(text)) return 'ignore'
    if (matcherOf(listed[`blocked_${of}`])(text)) return 'block'
  }
  return 'allow'
}

const NOTHING: TextMatcher = () => false

function matcherOf(globs: JsonValue | undefined): TextMatcher {
  if (!Array.isArray(globs) || isObject(globs)) return NOTHING
  const usable = globs
    .slice(0, MAX_GLOBS)
    .filter((glob): glob is string => typeof glob === 'string' && glob.length <= MAX_GLOB_CHARS)
  return usable.length === 0 ? NOTHING : compileGlobs(usable)
}
