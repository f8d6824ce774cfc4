import { nameOfAddress } from '../../core/return-address.ts'
import type { TemplateValues } from '../../core/template.ts'
import type { PageValues } from '../../domain/pages.ts'
import type { Demand, NameChoice, SignedIn } from '../../domain/sso/single-sign-on.ts'
import { openForm } from '../web/form.ts'

/** A way to sign in, as a page lists it. */
export interface Choice {
  readonly name: string
  readonly address: string
}

/** The badges in the list are made from the names, because our pages load no images from other sites. */
export const choicesOf = (choices: readonly Choice[]): readonly TemplateValues[] =>
  choices.map(({ name, address }) => ({
    name,
    link: address,
    initial: [...name.trim()][0]?.toUpperCase() ?? '?',
  }))

/** Where a person chooses one of several services to sign in with. */
export function chooserValues(returnTo: string, choices: readonly Choice[]): PageValues<'sso-choose.page'> {
  return { client: nameOfAddress(returnTo), choices: choicesOf(choices) }
}

/** Asks a person to confirm the client before it gets a login token. */
export function confirmValues(
  { userId, returnTo, location }: SignedIn,
  isNew: boolean,
): PageValues<'sso-continue.page'> {
  return {
    is_new: isNew ? 'yes' : '',
    client: nameOfAddress(returnTo),
    // Query and fragment mean nothing to a person.
    client_address: returnTo.replace(/[?#].*$/s, ''),
    user_id: userId,
    link: location,
  }
}

/** Where a new person chooses a user name. */
export function nameValues(
  flow: string,
  { providerName, suggestion, displayName }: NameChoice,
  username = suggestion,
): PageValues<'sso-name.page'> {
  return {
    form: openForm({ flow }, { action: 'name' }),
    provider: providerName,
    display_name: displayName,
    username,
  }
}

type Deed =
  | 'removes_devices'
  | 'changes_password'
  | 'deactivates'
  | 'adds_address'
  | 'replaces_keys'
  | 'signs_in_elsewhere'

const DEEDS: readonly (readonly [pattern: RegExp, deed: Deed])[] = [
  [/ C\/(?:delete_)?devices/, 'removes_devices'],
  [/ C\/account\/password/, 'changes_password'],
  [/ C\/account\/deactivate/, 'deactivates'],
  [/ C\/account\/3pid/, 'adds_address'],
  [/ C\/keys\/device_signing/, 'replaces_keys'],
  [/ C1\/login\/get_token/, 'signs_in_elsewhere'],
]

/** Tells a person what an app wants to do in their name, and where to confirm it. */
export function demandValues({ userId, operation }: Demand, choices: readonly Choice[]): PageValues<'sso-prove.page'> {
  const deed = DEEDS.find(([pattern]) => pattern.test(operation))?.[1] ?? 'does_else'
  return { user_id: userId, choices: choicesOf(choices), [deed]: 'yes' }
}
