"""Mail on its way out: built, admitted, and delivered once."""
