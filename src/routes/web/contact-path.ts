import { ProtocolError } from '../../core/errors.ts'
import { isMedium, type Medium } from '../../core/threepid.ts'
import { PURPOSES, type Purpose } from '../../domain/contact/proof.ts'

function unrecognised(): ProtocolError {
  return new ProtocolError('M_UNRECOGNIZED', 'There is nothing under this path.')
}

export function purposeIn({ purpose }: { readonly purpose: string }): Purpose {
  const known = PURPOSES.find((each) => each === purpose)
  if (known === undefined) throw unrecognised()
  return known
}

export function mediumIn({ medium }: { readonly medium: string }): Medium {
  if (!isMedium(medium)) throw unrecognised()
  return medium
}
