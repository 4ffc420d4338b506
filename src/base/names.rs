//! Closed lists of names: an enum whose spelling, list and parser come from one place.

/// Declares an enum with `ALL`, `as_str`, `parse` and `Display`.
macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $Name:ident { $($(#[$vmeta:meta])* $Variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $Name { $($(#[$vmeta])* $Variant),* }

        impl $Name {
            /// Every member, in the order of declaration.
            pub const ALL: &'static [$Name] = &[$($Name::$Variant),*];

            /// The name as it is written in events and replies.
            pub const fn as_str(self) -> &'static str {
                match self { $($Name::$Variant => $text),* }
            }

            /// The member of this exact name.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($text => Some($Name::$Variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use names;
