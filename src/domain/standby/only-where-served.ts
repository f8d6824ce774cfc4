/** A node that stands by cannot answer this rightly. The request is passed on to the node that serves. */
export class OnlyWhereServed extends Error {}
